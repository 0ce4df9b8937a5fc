#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "grpcpp/grpcpp.h"
#include "proto/v1/agent_service.grpc.pb.h"
#include "tools/base/event_loop.h"
#include "worker/agent/core/commands.h"

namespace farandole {

class AgentRelay;

// The connections to other hosts that an agent makes for its driver (proto/v1/agent_service.proto): it lends its
// network and sees bytes of which it understands nothing. Each is carried by a call of AgentService.Relay over the
// connection that the agent has to its driver, so it ends with that.
//
// Threads: everything belongs to the loop's. Destroyed when the loop has ended.
class AgentRelays {
 public:
  // `on_ended` is called each time that one has ended.
  AgentRelays(EventLoop* loop, std::shared_ptr<grpc::Channel> channel, std::function<void()> on_ended);
  ~AgentRelays();

  // Connects, for 10 s at most, and tells the driver the result.
  void Open(const OpenRelay& wanted);
  // Tells the driver that there will be no connection.
  void Refuse(const OpenRelay& wanted, const std::string& why);

  bool empty() const { return relays_.empty(); }

 private:
  AgentRelay* Add();

  EventLoop* const loop_;
  const std::unique_ptr<v1::AgentService::Stub> stub_;
  const std::function<void()> on_ended_;
  std::map<AgentRelay*, std::unique_ptr<AgentRelay>> relays_;
};

}  // namespace farandole
