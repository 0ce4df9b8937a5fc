#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "collectives/core/tuning.h"
#include "collectives/core/types.h"

namespace farandole {

enum class BenchOp { kAllReduce, kAllGather, kBroadcast, kAllToAll, kReduceScatter, kBarrier };

inline constexpr BenchOp kBenchOps[] = {BenchOp::kAllReduce, BenchOp::kAllGather,     BenchOp::kBroadcast,
                                        BenchOp::kAllToAll,  BenchOp::kReduceScatter, BenchOp::kBarrier};

// "allreduce": as people write it, and as the output has it.
absl::string_view Name(BenchOp op);

// What `farandole bench` is asked to measure.
struct BenchRequest {
  BenchOp op = BenchOp::kAllReduce;
  int np = 2;
  // Of one operation at one rank: allreduce, broadcast: the tensor. allgather: the result. alltoall, reducescatter: the
  // input.
  std::vector<int64_t> bytes;
  std::string transport = "shm";  // or "tcp"
  DType dtype = DType::kFloat32;
  Algorithm algorithm = Algorithm::kAuto;
  bool engine = false;   // through the engine: named, negotiated, cached
  int64_t tensors = 1;   // with the engine: so many of `bytes` are asked for at once
  double seconds = 0.5;  // for each size, about
  bool json = false;
};

// What came of a command line: a request, or text to be shown (with exit code 0, or 2 if it is an error).
struct BenchCommandLine {
  bool run = false;
  BenchRequest request;
  bool error = false;
  std::string text;
};

// `arguments` are those after "farandole bench". Pure.
BenchCommandLine ParseBenchCommandLine(absl::Span<const std::string> arguments);

}  // namespace farandole
