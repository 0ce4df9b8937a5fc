#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "collectives/engine/wire.h"
#include "collectives/transport/control_channel.h"
#include "tools/base/clock.h"
#include "tools/base/mutex.h"

namespace farandole {

// What passes through one rank's control channel, for tests. Thread-safe.
class ChannelLog {
 public:
  struct Counts {
    int said = 0;      // requests announced to rank 0, or about to be
    int heard = 0;     // requests that others have announced (rank 0)
    int messages = 0;  // received
    int wakes = 0;     // calls of Wake()
    int returns = 0;   // of calls of Receive that were ready to wait
    int timeouts = 0;  // of those
    Instant deadline;  // of the last one
    bool waits = false;
    bool wake_waits = false;  // Wake() was called and Receive has not said so yet
    bool closed = false;

    // Has done all that there was to do.
    bool idle() const { return waits && !wake_waits; }
  };

  Counts counts() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return counts_;
  }

  template <typename Change>
  void Note(Change change) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    change(counts_);
    changed_.NotifyAll();
  }

  // Whether `condition` of the counts came true, in good time.
  template <typename Condition>
  bool Await(Condition condition) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return changed_.AwaitUntil(&mutex_, Now() + absl::Seconds(20), [&] {
      mutex_.AssertHeld();
      return condition(counts_);
    });
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  Counts counts_ ABSL_GUARDED_BY(mutex_);
};

// A control channel that tells `log` of everything.
class ObservedChannel : public ControlChannel {
 public:
  ObservedChannel(std::unique_ptr<ControlChannel> inner, ChannelLog* log) : inner_(std::move(inner)), log_(log) {}

  Rank rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }

  absl::Status Send(Rank to, std::string message) override {
    // Before it is sent: what follows from it may come at once.
    log_->Note([&](auto& counts) { counts.said += Announcements(message); });
    return inner_->Send(to, std::move(message));
  }

  Event Receive(Instant deadline) override {
    const bool waits = deadline > Now();
    log_->Note([&](auto& counts) {
      counts.waits = waits;
      if (waits) counts.deadline = deadline;
    });
    Event event = inner_->Receive(deadline);
    log_->Note([&](auto& counts) {
      counts.waits = false;
      if (waits) ++counts.returns;
      if (waits && event.kind == Event::kTimeout) ++counts.timeouts;
      if (event.kind == Event::kWoken) counts.wake_waits = false;
      if (event.kind != Event::kMessage) return;
      ++counts.messages;
      counts.heard += Announcements(event.message);
    });
    return event;
  }

  void Wake() override {
    // Before the wake itself: Receive may say so at once.
    log_->Note([](auto& counts) {
      ++counts.wakes;
      counts.wake_waits = true;
    });
    inner_->Wake();
  }

  void Close(Instant deadline) override {
    inner_->Close(deadline);
    log_->Note([](auto& counts) { counts.closed = true; });
  }

 private:
  static int Announcements(const std::string& message) {
    const absl::StatusOr<RequestList> list = DecodeRequestList(message);
    return list.ok() ? static_cast<int>(list->requests.size()) : 0;
  }

  const std::unique_ptr<ControlChannel> inner_;
  ChannelLog* const log_;
};

}  // namespace farandole
