// More elements than 32 bits can count, in real memory: 2 ranks, some 4.3 GB.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/optional.h"
#include "collectives/core/byte_buffer.h"
#include "collectives/core/communicator.h"
#include "gtest/gtest.h"
#include "tests/conformance/worlds.h"
#include "tools/base/clock.h"
#include "tools/base/instant.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole::testing {
namespace {

constexpr int64_t kCount = (int64_t{1} << 31) + 4099;

std::byte Element(int64_t i, Rank rank) { return static_cast<std::byte>((i * 7 + (i >> 31) + rank * 3) % 251); }

TEST(LargeTest, MoreThanTwoToThe31Elements) {
  const auto world = MakeWorld(Means::kShm, 2);
  OnAllRanks(2, [&](Rank rank) {
    absl::optional<ByteBuffer> data = ByteBuffer::Make(kCount);
    ASSERT_TRUE(data.has_value()) << "not enough memory for this test";
    for (int64_t i = 0; i < kCount; ++i) data->data()[i] = Element(i, rank);
    const auto communicator = world->MakeCommunicator(rank);
    const Instant deadline = Now() + absl::Minutes(10);
    ASSERT_OK(communicator->AllReduce(data->data(), data->data(), kCount, DType::kUint8, ReduceOp::kMax, deadline));
    int64_t wrong = 0;
    for (int64_t i = 0; i < kCount; ++i) wrong += data->data()[i] != std::max(Element(i, 0), Element(i, 1));
    EXPECT_EQ(wrong, 0) << "after the allreduce";
    if (rank == 1) {
      for (int64_t i = 0; i < kCount; ++i) data->data()[i] = Element(i, 5);
    }
    ASSERT_OK(communicator->Broadcast(data->span(), 1, deadline));
    wrong = 0;
    for (int64_t i = 0; i < kCount; ++i) wrong += data->data()[i] != Element(i, 5);
    EXPECT_EQ(wrong, 0) << "after the broadcast";
  });
}

}  // namespace
}  // namespace farandole::testing
