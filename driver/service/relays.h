#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "driver/service/agent_service.h"
#include "grpcpp/grpcpp.h"
#include "proto/convert/driver_convert.h"
#include "proto/v1/agent_service.pb.h"
#include "tools/base/instant.h"

namespace farandole {

// The driver's end of all relays: connections to other hosts that agents make for it (proto/v1/agent_service.proto).
// One thread carries the bytes of all.
//
//   awaited --the agent's call, with a connection--> open --both directions at their end--> gone
//      |  the agent's error, no call until the deadline      |  its agent is gone, either end is lost, Close()
//      +--> gone                                             +--> gone: the socket is closed
//
// A number is random and good for one call, by the agent that it was drawn for. Other calls are refused and counted.
//
// Thread-safe, but for Stop().
class Relays {
 public:
  // `job`: its id, as in certificates.
  static std::unique_ptr<Relays> Start(std::string job);
  virtual ~Relays() = default;

  // Awaits a call of `via` and returns its number. `done` is called once, on the thread of the relays, which it must
  // not block: with this end of the connection, a socket; or with why there is none (AgentService::OpenRelay has the
  // codes). `target`: in words, for errors.
  virtual uint64_t Await(const AgentIdentity& via, const std::string& target, Instant deadline, RelayDone done) = 0;

  // This agent is gone, and all its relays.
  virtual void Drop(const AgentIdentity& via) = 0;

  // A call of AgentService.Relay.
  virtual grpc::ServerBidiReactor<v1::RelayBytes, v1::RelayBytes>* Accept(grpc::CallbackServerContext* context) = 0;

  // Calls that named no relay of theirs.
  virtual int64_t refused() const = 0;

  // Ends all; from now on there are none.
  virtual void Close() = 0;
  // Ends the thread. After Close(), and after the servers whose calls were accepted. Idempotent.
  virtual void Stop() = 0;
};

}  // namespace farandole
