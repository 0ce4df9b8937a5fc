#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "collectives/core/group.h"
#include "tools/base/instant.h"

namespace farandole {

// How a thread sleeps for a channel while others use it. Thread-safe.
class SharedWaiting {
 public:
  virtual ~SharedWaiting() = default;

  // Returns soon after Receive has something to give, or at `deadline`. One thread at a time; it holds nothing that a
  // thread in Send or Receive needs.
  virtual void Wait(Instant deadline) = 0;

  // Between the two, which are counted, somebody calls Receive(Instant()) all the time: who sends to this rank does not
  // wake the thread in Wait.
  virtual void Attend() = 0;
  virtual void Unattend() = 0;
};

// Small ordered messages between rank 0 of a group and each other rank (a star), on which the engine negotiates. Apart
// from Transport, so that negotiation goes on while data moves.
//
// Thread safety: Send and Receive belong to one thread at a time; Wake may be called from any.
class ControlChannel {
 public:
  // Longest message; Send refuses a longer one with kInvalidArgument, a longer one from a peer closes its link.
  static constexpr int64_t kMessageBytesMax = int64_t{64} << 20;

  struct Event {
    enum Kind {
      kMessage,   // `message` came from rank `from`
      kPeerLost,  // the link to `from` has ended; `message` says how. Reported once per peer, after all its messages
      kWoken,     // Wake() was called since the last kWoken
      kTimeout,   // `deadline` passed
    };
    Kind kind = kTimeout;
    Rank from = 0;
    std::string message;
  };

  virtual ~ControlChannel() = default;

  virtual Rank rank() const = 0;
  virtual int size() const = 0;

  // Queues `message` for `to` (rank 0 may send to all others, the others to rank 0 only) and sends what can be sent
  // without blocking; the rest goes on inside Receive. A message for a lost peer is dropped: Receive reports the loss.
  virtual absl::Status Send(Rank to, std::string message) = 0;

  // Waits for the next event. Messages of one peer come in the order sent.
  virtual Event Receive(Instant deadline) = 0;

  // Null: only Receive waits, so the thread that does needs the channel for itself. A channel that has it has a Receive
  // that only looks, without a system call, when the deadline has passed.
  virtual SharedWaiting* shared_waiting() { return nullptr; }

  // Makes the present or the next Receive return kWoken soon. Does not block.
  virtual void Wake() = 0;

  // Sends what is queued, until `deadline` at most, and then closes all links in order (peers see kPeerLost after the
  // last message). For the thread that owns the channel.
  virtual void Close(Instant deadline) = 0;
};

}  // namespace farandole
