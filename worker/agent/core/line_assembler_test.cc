#include "worker/agent/core/line_assembler.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/prng.h"

namespace farandole {
namespace {

using ::testing::ElementsAre;

const Instant kStart = Instant::FromNanos(1'000'000'000'000);
constexpr size_t kAll = SIZE_MAX;

// One piece per element.
std::vector<std::string> Pieces(LineAssembler* assembler, Instant now, size_t longest = LineAssembler::kMaxPiece) {
  std::vector<std::string> pieces;
  while (assembler->HasPiece(now)) {
    std::string piece;
    for (size_t limit = 1; piece.empty() && limit <= longest; ++limit) piece = assembler->Take(limit, now);
    pieces.push_back(piece);
  }
  return pieces;
}

TEST(LineAssembler, CutsAfterEveryKindOfTerminator) {
  LineAssembler assembler(LineAssembler::kMaxPiece);
  assembler.Append("one\ntwo\r\n10%\r20%\r\n\n\r\rrest", kStart);
  EXPECT_THAT(Pieces(&assembler, kStart), ElementsAre("one\n", "two\r\n", "10%\r", "20%\r\n", "\n", "\r", "\r"));
  EXPECT_EQ(assembler.size(), 4u);
  assembler.Append("!\n", kStart);
  EXPECT_THAT(Pieces(&assembler, kStart), ElementsAre("rest!\n"));
  EXPECT_EQ(assembler.FlushAt(), Instant::Infinite());
}

TEST(LineAssembler, CutsAnywhereWhatNobodyReadsAsLines) {
  LineAssembler assembler(LineAssembler::kMaxPiece, LineAssembler::Cut::kAnywhere);
  EXPECT_FALSE(assembler.HasPiece(kStart));
  assembler.Append(std::string("a\nb\r\0c", 6), kStart);
  EXPECT_TRUE(assembler.HasPiece(kStart));
  EXPECT_EQ(assembler.FlushAt(), Instant::Infinite());
  EXPECT_EQ(assembler.Take(0, kStart), "");
  EXPECT_EQ(assembler.Take(3, kStart), "a\nb");
  assembler.Append("d", kStart);
  EXPECT_EQ(assembler.Take(kAll, kStart), std::string("\r\0cd", 4));
  EXPECT_EQ(assembler.size(), 0u);
  EXPECT_FALSE(assembler.HasPiece(kStart));
}

TEST(LineAssembler, TakesAsManyWholeLinesAsFit) {
  LineAssembler assembler(LineAssembler::kMaxPiece);
  assembler.Append("aa\nbb\ncc\n", kStart);
  EXPECT_EQ(assembler.Take(2, kStart), "");
  EXPECT_EQ(assembler.Take(7, kStart), "aa\nbb\n");
  EXPECT_EQ(assembler.Take(kAll, kStart), "cc\n");
  EXPECT_EQ(assembler.Take(kAll, kStart), "");
}

TEST(LineAssembler, KeepsReturnAndNewlineTogetherAcrossReads) {
  LineAssembler assembler(LineAssembler::kMaxPiece);
  assembler.Append("x\r", kStart);
  EXPECT_FALSE(assembler.HasPiece(kStart));
  assembler.Append("\ny\r", kStart);
  EXPECT_THAT(Pieces(&assembler, kStart), ElementsAre("x\r\n"));
  EXPECT_EQ(assembler.FlushAt(), kStart + absl::Milliseconds(20));
  EXPECT_THAT(Pieces(&assembler, kStart + absl::Milliseconds(20)), ElementsAre("y\r"));
}

TEST(LineAssembler, GivesUpOnATerminatorAfterAWhileAndAtTheEnd) {
  LineAssembler assembler(LineAssembler::kMaxPiece);
  assembler.Append("Password: ", kStart);
  EXPECT_EQ(assembler.FlushAt(), kStart + absl::Milliseconds(500));
  EXPECT_FALSE(assembler.HasPiece(kStart + absl::Milliseconds(499)));
  EXPECT_THAT(Pieces(&assembler, kStart + absl::Milliseconds(500)), ElementsAre("Password: "));
  assembler.Append("bye", kStart + absl::Seconds(2));
  EXPECT_FALSE(assembler.HasPiece(kStart + absl::Seconds(2)));
  assembler.Finish();
  EXPECT_THAT(Pieces(&assembler, kStart + absl::Seconds(2)), ElementsAre("bye"));
  EXPECT_EQ(assembler.size(), 0u);
}

TEST(LineAssembler, ALineThatGrowsSlowlyIsShownToo) {
  LineAssembler assembler(LineAssembler::kMaxPiece);
  assembler.Append("old\nTraining", kStart);
  for (int i = 1; i <= 3; ++i) assembler.Append(".", kStart + absl::Milliseconds(150) * i);
  EXPECT_EQ(assembler.FlushAt(), kStart + absl::Milliseconds(500));
  EXPECT_THAT(Pieces(&assembler, kStart + absl::Milliseconds(500)), ElementsAre("old\n", "Training..."));
}

TEST(LineAssembler, CutsLinesThatAreTooLong) {
  LineAssembler assembler(4);
  assembler.Append("abcdefgh\nijk\nlmn\r\n", kStart);
  EXPECT_THAT(Pieces(&assembler, kStart), ElementsAre("abcd", "efgh", "\n", "ijk\n", "lmn\r", "\n"));
}

// Against a second, stupid way: whatever the reads and limits, the bytes come out in order, and no piece begins within
// a line unless the one before was cut for its length.
TEST(LineAssembler, LosesAndMovesNothing) {
  Prng random(7);
  for (int round = 0; round < 200; ++round) {
    const size_t max_piece = 1 + random.Below(9);
    LineAssembler assembler(max_piece);
    std::string in, out;
    for (int step = 0; step < 40; ++step) {
      std::string bytes;
      for (uint64_t n = random.Below(12); n > 0; --n) bytes += "ab\n\r"[random.Below(4)];
      in += bytes;
      assembler.Append(bytes, kStart);
      for (uint64_t n = random.Below(4); n > 0; --n) {
        const size_t limit = random.Below(20);
        const std::string taken = assembler.Take(limit, kStart);
        EXPECT_LE(taken.size(), limit);
        out += taken;
      }
      EXPECT_EQ(in.size(), out.size() + assembler.size());
    }
    assembler.Finish();
    out += assembler.Take(kAll, kStart);
    EXPECT_EQ(in, out);
  }
}

}  // namespace
}  // namespace farandole
