#pragma once

#include <cstdint>

#include "collectives/schedule/choice.h"
#include "collectives/schedule/programs.h"

namespace farandole::sim {

// Seconds that `program` takes with a tensor of `bytes`, from a common start to the end of the last rank. For tests:
// what the estimates of choice.h are compared with. Unlike those it lets each rank go on by itself, and has each
// message wait for what it needs:
//
//   a rank     sends one message at a time and receives one at a time, both at once; a message occupies sender and
//              receiver for alpha + bytes * beta, a received one the receiver for its reducing as well
//   a network  link of a host, one for each direction, carries one message at a time, for bytes * beta
//
// Messages are served in the order of rounds, and inside one as their senders are ready.
double Run(const CostModel& model, const Topology& topology, const Program& program, int64_t bytes);

}  // namespace farandole::sim
