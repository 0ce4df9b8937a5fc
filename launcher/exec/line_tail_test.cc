#include "launcher/exec/line_tail.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace farandole {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(LineTail, KeepsTheLastTwentyLines) {
  LineTail tail;
  EXPECT_THAT(tail.Lines(), IsEmpty());
  for (int i = 0; i < 100; ++i) tail.Append(absl::StrCat("line ", i, "\n"));
  ASSERT_EQ(tail.Lines().size(), 20u);
  EXPECT_EQ(tail.Lines().front(), "line 80");
  EXPECT_EQ(tail.Lines().back(), "line 99");
  tail.Append("unfinished");
  ASSERT_EQ(tail.Lines().size(), 20u);
  EXPECT_EQ(tail.Lines().back(), "unfinished");
}

TEST(LineTail, ALineInPiecesIsOneLine) {
  LineTail tail;
  for (const char* piece : {"Value", "Error: b", "oom\n", "x\r", "\n"}) tail.Append(piece);
  EXPECT_THAT(tail.Lines(), ElementsAre("ValueError: boom", "x"));
}

TEST(LineTail, AProgressBarIsOneLineAndDoesNotPushTheErrorOut) {
  LineTail tail;
  tail.Append("before\n");
  for (int i = 0; i <= 100; ++i) tail.Append(absl::StrCat("\r", i, "% of the epoch"));
  tail.Append("\nboom\n\n");
  EXPECT_THAT(tail.Lines(), ElementsAre("before", "100% of the epoch", "boom"));
}

TEST(LineTail, AnEndlessLineIsCut) {
  LineTail tail;
  for (int i = 0; i < 1000; ++i) tail.Append(std::string(5000, 'x'));
  ASSERT_EQ(tail.Lines().size(), 1u);
  EXPECT_EQ(tail.Lines()[0].size(), LineTail::kLineBytes);
}

}  // namespace
}  // namespace farandole
