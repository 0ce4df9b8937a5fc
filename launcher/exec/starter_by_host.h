#pragma once

#include <functional>
#include <string>
#include <utility>

#include "driver/runtime/agent_starter.h"

namespace farandole {

// Starts each host's agent in the way that fits the host: here as a child process, elsewhere over ssh. Thread-safe if
// the choice is.
class StarterByHost : public AgentStarter {
 public:
  using Choice = std::function<AgentStarter*(const std::string& host)>;

  // `choice` gives the same starter for a host every time; the starters outlive this.
  explicit StarterByHost(Choice choice) : choice_(std::move(choice)) {}

  void Start(const AgentStart& start, AgentStartEvents events) override {
    choice_(start.host)->Start(start, std::move(events));
  }
  void Kill(const std::string& host) override { choice_(host)->Kill(host); }

 private:
  const Choice choice_;
};

}  // namespace farandole
