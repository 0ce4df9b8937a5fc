#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "collectives/transport/tcp/dial.h"
#include "tools/base/unique_fd.h"

namespace farandole {

// One end of a control link, whatever state it is in: not there yet, on the way, connected, ended. Messages that
// are queued before it is connected go out then. One thread.
class ControlLink {
 public:
  // Neither before nor after its life is there a connection.
  bool connected() const { return fd_.get() >= 0; }
  bool ended() const { return ended_; }

  // Begins with a dial, whose link `take` then takes, or with the connection that a handshake has given.
  void Start(Dial dial, std::function<UniqueFd(Dial&)> take);
  void Start(UniqueFd fd);

  // Drops the message if the link has ended.
  void Queue(std::string message);

  // Goes on with the dial and sends what can be sent now. The link's error, if it ended: a connected one is then still
  // read to its end, since the peer may have sent something before it went.
  absl::Status Flush();
  bool has_output() const { return !output_.empty(); }

  // The next whole message, if there is one now. The error with which the link ended, after all its messages.
  absl::StatusOr<absl::optional<std::string>> Receive();

  // For poll(2); -1 if there is nothing to wait for.
  int fd() const;
  short events() const;

  // Lets go of the connection once the peer's machine has all that was sent, or at once if `force`. Whether it is gone.
  bool Close(bool force);

  // Ends the connection without waiting for anything.
  void End();

 private:
  absl::Status AdvanceDial();
  absl::Status ReceiveInto(std::string& buffer, size_t length);

  absl::optional<Dial> dial_;
  std::function<UniqueFd(Dial&)> take_;
  UniqueFd fd_;
  bool ended_ = false;
  bool output_ended_ = false;       // sending has failed
  std::deque<std::string> output_;  // whole messages with their headers
  size_t output_sent_ = 0;          // of the first one
  std::string header_;
  std::string message_;
  size_t message_length_ = 0;
  bool shut_down_ = false;
};

}  // namespace farandole
