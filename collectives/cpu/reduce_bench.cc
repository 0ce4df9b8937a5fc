// How fast the arithmetic is, against memcpy of as much. Bytes are counted as they are read and written:
//   bazel run //collectives/cpu:reduce_bench -- --benchmark_filter=float16
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "collectives/cpu/adasum_kernels.h"
#include "collectives/cpu/reduce.h"

namespace farandole {
namespace {

// Ones, so that no sum becomes slow by being subnormal or infinite.
std::vector<std::byte> Ones(DType dtype, int64_t count) {
  std::vector<std::byte> bytes(static_cast<size_t>(count * SizeOf(dtype)));
  if (IsFloat(dtype)) {
    const std::vector<float> ones(static_cast<size_t>(count), 1.0f);
    Convert(DType::kFloat32, ones.data(), dtype, bytes.data(), count);
  }
  return bytes;
}

void Finish(benchmark::State& state, int64_t count, int64_t bytes_per_element) {
  state.SetItemsProcessed(state.iterations() * count);
  state.SetBytesProcessed(state.iterations() * count * bytes_per_element);
}

void Memcpy(benchmark::State& state, int64_t bytes) {
  const std::vector<std::byte> from(static_cast<size_t>(bytes), std::byte{1});
  std::vector<std::byte> to(from.size());
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), from.size());
    benchmark::ClobberMemory();
  }
  Finish(state, bytes, 2);
}

void Many(benchmark::State& state, DType dtype, int64_t count, int sources, bool copy) {
  const std::vector<std::vector<std::byte>> inputs(static_cast<size_t>(sources), Ones(dtype, count));
  std::vector<const void*> from;
  for (const std::vector<std::byte>& input : inputs) from.push_back(input.data());
  std::vector<std::byte> to(inputs[0].size()), second(inputs[0].size());
  for (auto _ : state) {
    ReduceMany(dtype, ReduceOp::kSum, from, to.data(), copy ? second.data() : nullptr, count, 1);
    benchmark::ClobberMemory();
  }
  Finish(state, count, (sources + (copy ? 2 : 1)) * SizeOf(dtype));
}

void Narrow(benchmark::State& state, DType dtype, int64_t count) {
  const std::vector<std::byte> from = Ones(DType::kFloat32, count);
  std::vector<std::byte> to(static_cast<size_t>(count * SizeOf(dtype)));
  for (auto _ : state) {
    Convert(DType::kFloat32, from.data(), dtype, to.data(), count);
    benchmark::ClobberMemory();
  }
  Finish(state, count, SizeOf(dtype) + 4);
}

void Dots(benchmark::State& state, DType dtype, int64_t count) {
  const std::vector<std::byte> a = Ones(dtype, count);
  const std::vector<std::byte> b = Ones(dtype, count);
  for (auto _ : state) benchmark::DoNotOptimize(AdasumDots(dtype, a.data(), b.data(), count));
  Finish(state, count, 2 * SizeOf(dtype));
}

void Combine(benchmark::State& state, DType dtype, int64_t count) {
  const std::vector<std::byte> a = Ones(dtype, count);
  std::vector<std::byte> b = Ones(dtype, count);
  for (auto _ : state) {
    AdasumCombine(dtype, a.data(), 0.5, b.data(), 0.5, b.data(), count);
    benchmark::ClobberMemory();
  }
  Finish(state, count, 3 * SizeOf(dtype));
}

// In the second cache, and beyond all of them.
constexpr int64_t kCounts[] = {int64_t{32} << 10, int64_t{4} << 20};

void RegisterFor(DType dtype, int64_t count) {
  const std::string of = "/" + std::string(Name(dtype)) + "/" + std::to_string(count);
  benchmark::RegisterBenchmark(("sum2" + of).c_str(), [=](auto& state) { Many(state, dtype, count, 2, false); });
  benchmark::RegisterBenchmark(("sum4_copy" + of).c_str(), [=](auto& state) { Many(state, dtype, count, 4, true); });
  if (!IsFloat(dtype)) return;
  if (SizeOf(dtype) == 2) {
    benchmark::RegisterBenchmark(("narrow" + of).c_str(), [=](auto& state) { Narrow(state, dtype, count); });
  }
  benchmark::RegisterBenchmark(("dots" + of).c_str(), [=](auto& state) { Dots(state, dtype, count); });
  benchmark::RegisterBenchmark(("combine" + of).c_str(), [=](auto& state) { Combine(state, dtype, count); });
}

}  // namespace
}  // namespace farandole

int main(int argc, char** argv) {
  for (int64_t count : farandole::kCounts) {
    for (int64_t bytes : {2 * count, 4 * count}) {
      const std::string name = "memcpy/" + std::to_string(bytes) + "_bytes";
      benchmark::RegisterBenchmark(name.c_str(), [=](auto& state) { farandole::Memcpy(state, bytes); });
    }
    for (farandole::DType dtype : farandole::kDTypes) farandole::RegisterFor(dtype, count);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
