#pragma once

#include <string>

namespace farandole {

// How far a host has come on its way into the job, in this order. The first three are those of a host that is reached
// over a network; an agent on this machine begins with kAgent.
enum class HostStep {
  kResolve,       // its name is being looked up
  kConnect,       // a connection to it is being made
  kAuthenticate,  // we prove to each other who we are
  kAgent,         // the agent is being brought there and started
  kCallBack,      // it was started and has to call the driver back
  kWorkers,       // it is ready for workers
};

// "resolve", "connect", "authenticate", "agent", "call back", "workers"
std::string ToString(HostStep step);

// Where a host stands, for a person.
struct HostStanding {
  std::string host;
  HostStep step = HostStep::kResolve;
  std::string note;  // what holds it up there; empty: nothing came back yet
  friend bool operator==(const HostStanding&, const HostStanding&) = default;
};

}  // namespace farandole
