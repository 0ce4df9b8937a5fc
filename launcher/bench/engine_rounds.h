#pragma once

#include <memory>

#include "absl/status/status.h"
#include "collectives/core/communicator.h"
#include "launcher/bench/bench_request.h"
#include "launcher/bench/forked_group.h"

namespace farandole {

// As RunRounds, through an engine: a round asks for `request.tensors` allreduces by name and waits for all of them.
absl::Status RunEngineRounds(const BenchRequest& request, const ForkedMember& member,
                             std::unique_ptr<Communicator> communicator);

}  // namespace farandole
