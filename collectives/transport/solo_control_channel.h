#pragma once

#include <string>

#include "absl/status/status.h"
#include "collectives/transport/checks.h"
#include "collectives/transport/control_channel.h"
#include "tools/base/instant.h"
#include "tools/base/mutex.h"

namespace farandole {

// The control channel of a group of one: nobody to talk to, but its thread can be woken.
class SoloControlChannel : public ControlChannel {
 public:
  Rank rank() const override { return 0; }
  int size() const override { return 1; }

  absl::Status Send(Rank to, std::string message) override { return CheckControlSend(0, 1, to, message); }

  Event Receive(Instant deadline) override {
    MutexLock lock(&mutex_);
    const bool woken = changed_.AwaitUntil(&mutex_, deadline, [this] {
      mutex_.AssertHeld();
      return woken_;
    });
    woken_ = false;
    return {woken ? Event::kWoken : Event::kTimeout, 0, ""};
  }

  void Wake() override {
    MutexLock lock(&mutex_);
    woken_ = true;
    changed_.NotifyAll();
  }

  void Close(Instant deadline) override {}

 private:
  Mutex mutex_;
  CondVar changed_;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace farandole
