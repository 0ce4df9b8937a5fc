#pragma once

#include <functional>
#include <string>

#include "tools/base/event_loop.h"
#include "tools/base/unique_fd.h"

namespace farandole {

// Carries bytes between a connected stream socket and one end of a Relay call (proto/v1/agent_service.proto), the same
// at the agent and at the driver:
//
//   socket --> [one piece, until Written()]  --> call       ends when the socket has been read to its end
//   socket <-- [one piece, until it is out]  <-- call       ends when the other side says so; the socket hears it
//
// Never more than one piece is held each way, so whoever is slow slows the other down. A socket whose other end is gone
// altogether has two seconds for what was on its way.
//
// All of it, destruction too, belongs to the loop's thread.
class RelayPump {
 public:
  static constexpr size_t kLongestPiece = 64 << 10;

  struct Call {
    // Sends a piece; `end`: the last, it may be empty. Answered by Written(), before which there is no other.
    std::function<void(std::string bytes, bool end)> write;
    // Asks for the next piece. Answered by Received(), before which there is no other.
    std::function<void()> read;
    // The last of all, and the pump may be destroyed in it. `whole`: both directions have come to their end; otherwise
    // the socket has failed, or nobody is there any more.
    std::function<void(bool whole)> over;
  };

  RelayPump(EventLoop* loop, UniqueFd socket, Call call);
  ~RelayPump();  // closes the socket
  RelayPump(const RelayPump&) = delete;
  RelayPump& operator=(const RelayPump&) = delete;

  void Begin();
  // After any of the following the pump may be gone.
  void Written();
  void Received(std::string bytes, bool end);

 private:
  void OnSocket(uint32_t events);
  void Rewatch();
  bool ReadSome();
  bool WriteSome();
  void Over(bool whole);

  EventLoop* const loop_;
  const UniqueFd socket_;
  const Call call_;

  bool reading_ = true;       // wants the socket's next bytes; otherwise a piece is on its way, or all have been read
  bool read_ended_ = false;   // all have been read
  bool end_written_ = false;  // and the other side has been told
  std::string unwritten_;     // for the socket
  bool call_ended_ = false;   // nothing follows from the call
  bool write_ended_ = false;  // and the socket has heard it
  bool abandoned_ = false;    // nobody is at the socket's other end
  EventLoop::TimerId lingering_ = 0;
};

}  // namespace farandole
