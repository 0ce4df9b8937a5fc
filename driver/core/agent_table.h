#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "driver/core/driver_view.h"
#include "driver/core/host_step.h"
#include "driver/core/ids.h"
#include "tools/base/instant.h"

namespace farandole {

// What the core knows of one agent.
struct AgentRecord {
  std::string host;
  Incarnation incarnation;
  AgentState state = AgentState::kStarting;
  HostStep step = HostStep::kResolve;
  std::string note;  // what holds it up there
  // Starting: when it must have reported. Ready: when it is taken for lost. Ending: when it must have ended.
  Instant deadline = Instant::Infinite();
  // Gone, and that cost the job something: what happened to it, a sentence.
  std::string loss;
  // Gone without an answer: what is left of it still has to be ended by force.
  bool must_be_forced = false;
};

// The agents of a job, one per host that has workers, in the order of the hosts.
class AgentTable {
 public:
  void Add(AgentRecord agent) { agents_.push_back(std::move(agent)); }

  // Null if there is none, if it has another incarnation, or if it is gone: what is said of it is about the past.
  AgentRecord* FindLive(absl::string_view host, Incarnation incarnation);
  const AgentRecord* FindHost(absl::string_view host) const;
  AgentRecord* FindHost(absl::string_view host);

  // CHECKs that the move is one of those that an agent can make.
  void Move(AgentRecord* agent, AgentState to);

  bool All(AgentState state) const;
  Instant NextDeadline() const;
  void ShiftDeadlines(absl::Duration by);

  std::vector<AgentRecord>& all() { return agents_; }
  const std::vector<AgentRecord>& all() const { return agents_; }

 private:
  std::vector<AgentRecord> agents_;
};

}  // namespace farandole
