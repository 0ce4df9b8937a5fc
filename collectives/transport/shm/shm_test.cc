#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "collectives/transport/shm/local_slab_source.h"
#include "collectives/transport/shm/shm_slab.h"
#include "collectives/transport/shm/slab_layout.h"
#include "collectives/transport/shm/spsc_ring.h"
#include "gtest/gtest.h"
#include "tools/base/clock.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::StatusIs;
using ::testing::HasSubstr;

Instant Soon() { return Now() + absl::Seconds(30); }

TEST(SlabLayout, NothingOverlapsForAnySize) {
  for (int size = 2; size <= 64; ++size) {
    const SlabLayout layout(size);
    std::set<std::pair<int64_t, int64_t>> pieces;
    for (Rank from = 0; from < size; ++from) {
      for (Rank to = 0; to < size; ++to) {
        if (from == to) continue;
        pieces.insert({layout.ControlAt(from, to), layout.ControlAt(from, to) + SlabLayout::kControlBytes});
        pieces.insert({layout.RingAt(from, to), layout.RingAt(from, to) + layout.RingBytes(from, to)});
      }
    }
    ASSERT_EQ(static_cast<int>(pieces.size()), 2 * size * (size - 1));
    int64_t end = 0;
    for (const auto& [begin, piece_end] : pieces) {
      ASSERT_GE(begin, end);
      end = piece_end;
    }
    ASSERT_EQ(end, layout.bytes());
  }
}

TEST(SpscRing, CarriesAllBytesInOrderBetweenTwoThreads) {
  constexpr uint64_t kCapacity = 64;
  constexpr int kBytes = 20'000;
  SpscRingControl control;
  std::byte data[kCapacity];
  std::thread producer([&] {
    SpscRingWriter writer(&control, data, kCapacity);
    for (int sent = 0; sent < kBytes;) {
      std::byte piece[37];
      const int count =
          static_cast<int>(std::min<uint64_t>({writer.Writable(), sizeof piece, uint64_t(kBytes - sent)}));
      for (int i = 0; i < count; ++i) piece[i] = static_cast<std::byte>((sent + i) * 7);
      writer.Put(absl::MakeConstSpan(piece, count));
      writer.Publish();
      sent += count;
      if (count == 0) std::this_thread::yield();
    }
  });
  SpscRingReader reader(&control, data, kCapacity);
  for (int received = 0; received < kBytes;) {
    std::byte piece[23];
    const int count = static_cast<int>(std::min<uint64_t>(reader.Readable(), sizeof piece));
    reader.Take(absl::MakeSpan(piece, count));
    reader.Release();
    for (int i = 0; i < count; ++i) EXPECT_EQ(piece[i], static_cast<std::byte>((received + i) * 7));
    received += count;
    if (count == 0) std::this_thread::yield();
  }
  producer.join();
  EXPECT_EQ(reader.Readable(), 0u);
}

TEST(SpscRing, DamagedPositionsDoNotLeadOutside) {
  SpscRingControl control;
  std::byte data[64];
  SpscRingWriter writer(&control, data, 64);
  SpscRingReader reader(&control, data, 64);
  control.written = ~uint64_t{0};
  control.read = 12345;
  EXPECT_LE(reader.Readable(), 64u);
  EXPECT_LE(writer.Writable(), 64u);
}

GroupSpec Spec(Rank rank, uint64_t generation = 1) {
  GroupSpec spec;
  spec.generation = Generation(generation);
  spec.rank = rank;
  spec.members = {{"a", Incarnation(11), ""}, {"a", Incarnation(12), ""}};
  return spec;
}

// Gives the same memory for every name, as a mixed-up agent might.
class MixedUpSource : public SlabSource {
 public:
  absl::StatusOr<UniqueFd> Open(absl::string_view name, int64_t bytes, Instant deadline) override {
    return source_.Open("the same", bytes, deadline);
  }

 private:
  LocalSlabSource source_;
};

TEST(ShmSlab, RefusesMemoryOfAnotherGenerationAndASecondProcessInAPlace) {
  MixedUpSource source;
  ASSERT_OK_AND_ASSIGN(const auto first, ShmSlab::Open(Spec(0), source, Soon()));
  EXPECT_OK(ShmSlab::Open(Spec(1), source, Soon()));
  EXPECT_THAT(ShmSlab::Open(Spec(1, 2), source, Soon()),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("another group")));
  GroupSpec stranger = Spec(0);
  stranger.members[0].incarnation = Incarnation(99);
  EXPECT_THAT(ShmSlab::Open(stranger, source, Soon()),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("already rank 0 on host a")));
}

TEST(LocalSlabSource, OneNameOneMemoryOneSize) {
  LocalSlabSource source;
  ASSERT_OK_AND_ASSIGN(const UniqueFd a, source.Open("g1", 4096, Soon()));
  ASSERT_OK_AND_ASSIGN(const UniqueFd b, source.Open("g1", 4096, Soon()));
  ASSERT_EQ(::pwrite(a.get(), "x", 1, 100), 1);
  char read = 0;
  ASSERT_EQ(::pread(b.get(), &read, 1, 100), 1);
  EXPECT_EQ(read, 'x');
  EXPECT_THAT(source.Open("g1", 8192, Soon()), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace farandole
