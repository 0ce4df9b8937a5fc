#include "worker/agent/relays.h"

#include <utility>

#include "worker/agent/relay.h"

namespace farandole {

AgentRelays::AgentRelays(EventLoop* loop, std::shared_ptr<grpc::Channel> channel, std::function<void()> on_ended)
    : loop_(loop), stub_(v1::AgentService::NewStub(channel)), on_ended_(std::move(on_ended)) {}

AgentRelays::~AgentRelays() = default;

void AgentRelays::Open(const OpenRelay& wanted) { Add()->Connect(wanted); }

void AgentRelays::Refuse(const OpenRelay& wanted, const std::string& why) { Add()->Refuse(wanted, why); }

AgentRelay* AgentRelays::Add() {
  const auto relay = std::make_shared<AgentRelay*>(nullptr);
  auto made = std::make_unique<AgentRelay>(loop_, stub_.get(), [this, relay] {
    relays_.erase(*relay);
    on_ended_();
  });
  *relay = made.get();
  relays_.emplace(*relay, std::move(made));
  return *relay;
}

}  // namespace farandole
