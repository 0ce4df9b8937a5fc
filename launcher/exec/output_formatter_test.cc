#include "launcher/exec/output_formatter.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tools/base/prng.h"

namespace farandole {
namespace {

constexpr OutputStream kOut = OutputStream::kStdout, kErr = OutputStream::kStderr;

WorkerId Worker(int slot) { return {{"a", slot}, Incarnation(static_cast<uint64_t>(slot) + 1)}; }

std::string Prefix(int rank, OutputStream stream) {
  return absl::StrCat("[", rank, "]<", stream == kOut ? "stdout" : "stderr", ">:");
}

// The text for data of the worker in slot `rank`.
std::string Format(OutputFormatter& formatter, int rank, absl::string_view data, OutputStream stream = kOut) {
  return formatter.Output(Worker(rank), stream, Prefix(rank, stream), data);
}

TEST(OutputFormatter, PutsThePrefixBeforeEachPiece) {
  OutputFormatter formatter(false);
  EXPECT_EQ(Format(formatter, 0, "a\nb\n"), "[0]<stdout>:a\n[0]<stdout>:b\n");
  EXPECT_EQ(Format(formatter, 12, "a\rb\r\nc\n", kErr), "[12]<stderr>:a\r[12]<stderr>:b\r\n[12]<stderr>:c\n");
  EXPECT_EQ(Format(formatter, 1, "\n\n"), "[1]<stdout>:\n[1]<stdout>:\n");
  EXPECT_EQ(Format(formatter, 1, ""), "");
}

TEST(OutputFormatter, ALastPieceWithoutAnEndHasNone) {
  OutputFormatter formatter(false);
  EXPECT_EQ(Format(formatter, 0, "a\nend"), "[0]<stdout>:a\n[0]<stdout>:end");
}

TEST(OutputFormatter, TheRestOfAnUnfinishedLineHasNoPrefix) {
  OutputFormatter formatter(false);
  EXPECT_EQ(Format(formatter, 0, "loss"), "[0]<stdout>:loss");
  EXPECT_EQ(Format(formatter, 0, "=1\nx\n"), "=1\n[0]<stdout>:x\n");
}

TEST(OutputFormatter, AnUnfinishedLineIsEndedWhenAnotherWrites) {
  OutputFormatter formatter(false);
  EXPECT_EQ(Format(formatter, 0, "loss"), "[0]<stdout>:loss");
  EXPECT_EQ(Format(formatter, 1, "y\n"), "\n[1]<stdout>:y\n");
  EXPECT_EQ(Format(formatter, 0, "=1\n"), "[0]<stdout>:=1\n");
}

TEST(OutputFormatter, StreamsDisturbEachOtherOnlyOnOneSurface) {
  OutputFormatter apart(false), together(true);
  EXPECT_EQ(Format(apart, 0, "x"), "[0]<stdout>:x");
  EXPECT_EQ(Format(apart, 0, "e\n", kErr), "[0]<stderr>:e\n");
  EXPECT_EQ(Format(apart, 0, "y\n"), "y\n");
  EXPECT_EQ(Format(together, 0, "x"), "[0]<stdout>:x");
  EXPECT_EQ(Format(together, 0, "e\n", kErr), "\n[0]<stderr>:e\n");
}

TEST(OutputFormatter, NotesAreWholeLines) {
  OutputFormatter formatter(true);
  EXPECT_EQ(formatter.Note("one\n"), "one\n");
  Format(formatter, 0, "x");
  EXPECT_EQ(formatter.Note("two\n"), "\ntwo\n");
  EXPECT_EQ(Format(formatter, 0, "y\n"), "[0]<stdout>:y\n");
}

TEST(OutputFormatter, TheProgressLineGoesBeforeAnythingElseComes) {
  OutputFormatter formatter(true);
  EXPECT_EQ(formatter.Progress("1/2"), "1/2");
  EXPECT_EQ(formatter.Progress("2/2"), "\r\x1b[K2/2");
  EXPECT_EQ(Format(formatter, 0, "x\n"), "\r\x1b[K[0]<stdout>:x\n");
  EXPECT_EQ(formatter.Progress(""), "");
  EXPECT_EQ(formatter.Progress("2/2"), "2/2");
  EXPECT_EQ(formatter.Note("note\n"), "\r\x1b[Knote\n");
  EXPECT_EQ(formatter.Progress("2/2"), "2/2");
  EXPECT_EQ(formatter.Progress(""), "\r\x1b[K");
  Format(formatter, 0, "unfinished");
  EXPECT_EQ(formatter.Progress("2/2"), "");
}

TEST(OutputFormatter, TheStampIsThatOfAsctime) {
  const absl::TimeZone zone = absl::UTCTimeZone();
  const std::string stamp = OutputStamp(absl::FromCivil(absl::CivilSecond(2020, 1, 20, 12, 0, 1), zone), zone);
  EXPECT_EQ(stamp, "Mon Jan 20 12:00:01 2020");
  EXPECT_EQ(OutputStamp(absl::FromCivil(absl::CivilSecond(2024, 2, 3, 4, 5, 6), zone), zone),
            "Sat Feb  3 04:05:06 2024");
}

// Many workers, lines in pieces at random: what comes out has only whole lines of one worker, and each worker's bytes
// without prefixes and the ends that were put in are what it wrote.
TEST(OutputFormatter, EveryLineIsOneWorkersAndNothingIsLost) {
  Prng prng(3);
  OutputFormatter formatter(false);
  std::string shown, written[4], found[4];
  for (int round = 0; round < 20'000; ++round) {
    const int rank = static_cast<int>(prng.Below(4));
    std::string piece(prng.Below(6), static_cast<char>('a' + rank));
    if (prng.Chance(1, 2)) piece += '\n';
    written[rank] += piece;
    shown += Format(formatter, rank, piece);
  }
  size_t begin = 0;
  while (begin < shown.size()) {
    const size_t end = std::min(shown.find('\n', begin), shown.size());
    const std::string line = shown.substr(begin, end - begin);
    ASSERT_GE(line.size(), 12u);
    const int rank = line[1] - '0';
    ASSERT_TRUE(rank >= 0 && rank < 4) << line;
    ASSERT_EQ(line.substr(0, 12), Prefix(rank, kOut));
    const std::string text = line.substr(12);
    ASSERT_EQ(text.find_first_not_of(static_cast<char>('a' + rank)), std::string::npos) << line;
    found[rank] += text;
    begin = end + 1;
  }
  for (int rank = 0; rank < 4; ++rank) {
    std::string letters;
    for (const char c : written[rank]) letters += c == '\n' ? "" : std::string(1, c);
    EXPECT_EQ(found[rank], letters);
  }
}

}  // namespace
}  // namespace farandole
