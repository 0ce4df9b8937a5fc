// Whatever the processor can do, the bytes are the same.
#include <cmath>
#include <cstddef>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "collectives/cpu/adasum_kernels.h"
#include "collectives/cpu/reduce.h"
#include "collectives/reference/reference.h"
#include "gtest/gtest.h"
#include "hwy/highway.h"
#include "tools/base/prng.h"

namespace farandole {
namespace {

using reference::Bytes;

// For as long as it lives, only one of the sets of instructions that this processor has is used.
class OnlyTarget {
 public:
  explicit OnlyTarget(int64_t target) { Use(target); }
  ~OnlyTarget() { Use(0); }

 private:
  static void Use(int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().DeInit();
  }
};

// Numbers of every magnitude, infinities and NaN among them; aligned to nothing.
Bytes AnyElements(DType dtype, int64_t count, Prng& prng) {
  Bytes bytes(1 + count * SizeOf(dtype));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(prng.Below(256));
  return bytes;
}

// Which NaN it is stays open.
Bytes WithOneNan(DType dtype, Bytes bytes) {
  if (!IsFloat(dtype)) return bytes;
  for (size_t at = 1; at < bytes.size(); at += SizeOf(dtype)) {
    const long double value = reference::Decode(dtype, &bytes[at]);
    if (std::isnan(value)) reference::Encode(dtype, std::nanl(""), &bytes[at]);
  }
  return bytes;
}

// `make` has the same result on all targets.
void ExpectSameEverywhere(const std::string& what, const std::function<Bytes()>& make) {
  std::vector<Bytes> results;
  std::vector<const char*> names;
  for (int64_t target : hwy::SupportedAndGeneratedTargets()) {
    const OnlyTarget only(target);
    results.push_back(make());
    names.push_back(hwy::TargetName(target));
    EXPECT_EQ(results.back(), results.front()) << what << ": " << names.back() << " differs from " << names.front();
  }
}

constexpr int64_t kCounts[] = {0, 1, 3, 7, 16, 61, 128, 1000, 4099};

TEST(Targets, ThisProcessorHasMoreThanOne) {
#if HWY_ARCH_X86
  EXPECT_GE(hwy::SupportedAndGeneratedTargets().size(), 2) << "nothing is compared";
#endif
}

TEST(Targets, Reductions) {
  Prng prng(11);
  for (DType dtype : kDTypes) {
    for (ReduceOp op : kReduceOps) {
      if (op == ReduceOp::kAdasum || !Combines(dtype, op)) continue;
      for (int64_t count : kCounts) {
        std::vector<Bytes> inputs;
        std::vector<const void*> from;
        for (int i = 0; i < 3; ++i) inputs.push_back(AnyElements(dtype, count, prng));
        for (const Bytes& input : inputs) from.push_back(&input[1]);
        ExpectSameEverywhere(std::string(Name(dtype)) + " " + std::string(Name(op)), [&] {
          Bytes to(1 + count * SizeOf(dtype));
          ReduceMany(dtype, op, from, &to[1], nullptr, count, op == ReduceOp::kAverage ? 3 : 1);
          return WithOneNan(dtype, to);
        });
      }
    }
  }
}

TEST(Targets, ScalingAndConversions) {
  Prng prng(12);
  for (DType dtype : kDTypes) {
    if (!IsFloat(dtype)) continue;
    for (int64_t count : kCounts) {
      const Bytes input = AnyElements(dtype, count, prng);
      ExpectSameEverywhere(std::string(Name(dtype)) + " scaled", [&] {
        Bytes to(1 + count * SizeOf(dtype));
        Scale(dtype, &input[1], &to[1], count, 1.0 / 3);
        return WithOneNan(dtype, to);
      });
      for (DType other : kDTypes) {
        if (!IsFloat(other)) continue;
        ExpectSameEverywhere(std::string(Name(dtype)) + " to " + std::string(Name(other)), [&] {
          Bytes to(1 + count * SizeOf(other));
          Convert(dtype, &input[1], other, &to[1], count);
          return WithOneNan(other, to);
        });
      }
    }
  }
}

TEST(Targets, EveryFloat16AndItsNeighbours) {
  std::vector<uint16_t> all(65536);
  for (int i = 0; i < 65536; ++i) all[i] = static_cast<uint16_t>(i);
  for (DType dtype : {DType::kFloat16, DType::kBfloat16}) {
    ExpectSameEverywhere(std::string(Name(dtype)), [&] {
      std::vector<float> wide(65536);
      Convert(dtype, all.data(), DType::kFloat32, wide.data(), 65536);
      Bytes result(1);
      for (float towards : {-HUGE_VALF, 0.0f, HUGE_VALF}) {
        std::vector<float> near;
        // Between two neighbours, and a little to each side.
        for (int i = 0; i + 1 < 0x7c00; ++i) near.push_back(std::nextafter((wide[i] + wide[i + 1]) / 2, towards));
        Bytes narrow(2 * near.size());
        Convert(DType::kFloat32, near.data(), dtype, narrow.data(), static_cast<int64_t>(near.size()));
        result.insert(result.end(), narrow.begin(), narrow.end());
      }
      const std::byte* bits = reinterpret_cast<const std::byte*>(wide.data());
      result.insert(result.end(), bits, bits + 4 * wide.size());
      return result;
    });
  }
}

TEST(Targets, Adasum) {
  Prng prng(13);
  for (DType dtype : kDTypes) {
    if (!IsFloat(dtype)) continue;
    for (int64_t count : kCounts) {
      std::vector<Bytes> inputs;
      for (int i = 0; i < 2; ++i) {
        std::vector<long double> values;
        for (int64_t j = 0; j < count; ++j) values.push_back(prng.Unit() - 0.5L);
        inputs.push_back(reference::EncodeAll(dtype, values));
        inputs.back().insert(inputs.back().begin(), std::byte{0});
      }
      ExpectSameEverywhere(std::string(Name(dtype)), [&] {
        const AdasumProducts dots = AdasumDots(dtype, &inputs[0][1], &inputs[1][1], count);
        Bytes to(1 + count * SizeOf(dtype));
        AdasumCombine(dtype, &inputs[0][1], 0.3, &inputs[1][1], -1.7, &to[1], count);
        const std::byte* bits = reinterpret_cast<const std::byte*>(&dots);
        to.insert(to.end(), bits, bits + sizeof dots);
        return to;
      });
    }
  }
}

}  // namespace
}  // namespace farandole
