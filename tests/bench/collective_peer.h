#pragma once

// What the programs for peers share: the command line OP BYTES,BYTES SECONDS, the memory of an operation, the check of
// its result, and the loop that `farandole bench` runs as well. Only the C++ library is used.

#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "launcher/bench/timed_loop.h"

namespace farandole::bench {

struct PeerRequest {
  std::string op;
  std::vector<long long> bytes;
  double seconds = 0.5;
};

inline PeerRequest ReadPeerRequest(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s OP BYTES,BYTES SECONDS\n", argv[0]);
    std::exit(2);
  }
  PeerRequest request{argv[1], {}, std::strtod(argv[3], nullptr)};
  std::stringstream list(argv[2]);
  for (std::string part; std::getline(list, part, ',');)
    request.bytes.push_back(std::strtoll(part.c_str(), nullptr, 10));
  return request;
}

// As farandole's BenchTensors: float32; each element that rank r gives is 1 if r is even and 2 if it is odd.
struct PeerTensors {
  PeerTensors(const std::string& op, int size, int rank, long long bytes) : count(bytes / 4) {
    if (op == "alltoall") count = count / size * size;
    size_t at = 0;
    for (int r = 0; r < size; ++r) {
      const size_t share =
          op == "alltoall" ? count / size : count / size + (static_cast<size_t>(r) < count % size ? 1 : 0);
      shares.push_back(static_cast<int>(share));
      begins.push_back(static_cast<int>(at));
      at += share;
    }
    const float given = static_cast<float>(1 + rank % 2);
    input.assign(op == "allgather" ? shares[rank] : count, given);
    output.assign(op == "reducescatter" ? shares[rank] : count, op == "broadcast" ? given : 0.0f);
    for (int r = 0; r < size; ++r) sum += static_cast<float>(1 + r % 2);
  }

  bool Right(const std::string& op) const {
    for (size_t i = 0; i < output.size(); ++i) {
      float want = 1.0f;
      if (op == "allreduce" || op == "reducescatter") want = sum;
      if (op == "allgather" || op == "alltoall") {
        size_t r = shares.size() - 1;
        while (i < static_cast<size_t>(begins[r])) --r;
        want = static_cast<float>(1 + r % 2);
      }
      if (output[i] != want) return false;
    }
    return true;
  }

  size_t count;
  std::vector<int> shares, begins;  // by rank, in elements
  std::vector<float> input, output;
  float sum = 0;
};

// Measures each size and prints as `farandole bench --json` does. `once(tensors)` runs the operation, `agree(number)`
// makes rank 0's number everybody's and waits for all. Returns the process's exit code.
template <typename Once, typename Agree>
int MeasurePeer(const PeerRequest& request, int size, int rank, const std::string& transport, Once once, Agree agree) {
  for (const long long bytes : request.bytes) {
    PeerTensors tensors(request.op, size, rank, bytes);
    if (!once(tensors)) return 1;
    if (request.op != "barrier" && !tensors.Right(request.op)) {
      std::fprintf(stderr, "rank %d: the result of %s of %lld bytes is wrong\n", rank, request.op.c_str(), bytes);
      return 1;
    }
    Timing timing;
    if (!TimeRounds(
            request.seconds, [&] { return once(tensors); }, agree, &timing))
      return 1;
    if (rank == 0) PrintTiming(request.op, size, bytes, transport, "", timing);
  }
  return 0;
}

}  // namespace farandole::bench
