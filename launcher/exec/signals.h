#pragma once

#include <functional>
#include <thread>

#include "tools/base/unique_fd.h"

namespace farandole {

// Takes the signals by which a person or a scheduler asks a job to end (SIGINT, SIGTERM, SIGHUP) as calls of a function
// on a thread of its own. One that was ignored when this process started stays ignored (nohup, a background job of a
// script). Ctrl-Z keeps its usual meaning: it stops the launcher; the workers, in sessions of their own, go on.
//
// Made before any other thread: threads inherit that these signals are blocked, else one of them might take one.
class SignalWatcher {
 public:
  explicit SignalWatcher(std::function<void(int signal)> on_signal);
  // From here on the signals do again what they did before.
  ~SignalWatcher();
  SignalWatcher(const SignalWatcher&) = delete;
  SignalWatcher& operator=(const SignalWatcher&) = delete;

 private:
  void Run();

  const std::function<void(int signal)> on_signal_;
  UniqueFd signals_;
  UniqueFd stop_;
  std::thread thread_;
};

}  // namespace farandole
