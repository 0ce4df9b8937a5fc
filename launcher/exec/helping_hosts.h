#pragma once

#include <atomic>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "tools/base/mutex.h"

namespace farandole {

// Which hosts' agents are up and can lend their network to reach others. Thread-safe.
class HelpingHosts {
 public:
  // What is known of a host of which nothing was said: its agent is yet to come.
  void Coming(const std::string& host) { Set(host, State::kComing); }
  // Its agent has been told where the driver is.
  void Up(const std::string& host) { Set(host, State::kUp); }
  void Gone(const std::string& host) { Set(host, State::kGone); }

  bool IsUp(const std::string& host) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits while it is coming. True: it is up. False: it is gone, or `ended` was set, which Wake() has to follow.
  bool Await(const std::string& host, const std::atomic<bool>& ended) ABSL_LOCKS_EXCLUDED(mutex_);
  void Wake() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  enum class State { kComing, kUp, kGone };

  void Set(const std::string& host, State state) ABSL_LOCKS_EXCLUDED(mutex_);
  State Get(const std::string& host) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  CondVar changed_;
  std::map<std::string, State> states_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace farandole
