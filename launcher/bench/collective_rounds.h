#pragma once

#include "absl/status/status.h"
#include "launcher/bench/bench_request.h"
#include "launcher/bench/forked_group.h"

namespace farandole {

// One member's part of a measurement: for each size, checks the result of one round, then times rounds, on the
// communicator itself or through an engine. Rank 0 prints.
absl::Status RunRounds(const BenchRequest& request, const ForkedMember& member);

}  // namespace farandole
