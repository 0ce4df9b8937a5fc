#include "driver/core/words.h"

#include <cerrno>
#include <csignal>

#include "gtest/gtest.h"

namespace farandole {
namespace {

TEST(Words, RanksAreListedOneByOneUpToTwoInARow) {
  EXPECT_EQ(RanksInWords({2}), "rank 2");
  EXPECT_EQ(RanksInWords({0, 1}), "ranks 0, 1");
  EXPECT_EQ(RanksInWords({0, 1, 3}), "ranks 0, 1, 3");
  EXPECT_EQ(RanksInWords({0, 1, 2}), "ranks 0-2");
  EXPECT_EQ(RanksInWords({0, 2, 3, 4, 5, 9}), "ranks 0, 2-5, 9");
}

TEST(Words, Ends) {
  EXPECT_EQ(EndInWords(ExitStatus{3, 0}), "ended with exit code 3");
  EXPECT_EQ(EndInWords(ExitStatus{0, SIGKILL}), "was ended by signal 9 (SIGKILL)");
}

TEST(Words, NumbersWithoutANameStayNumbers) {
  EXPECT_EQ(SignalInWords(SIGTERM), "SIGTERM");
  EXPECT_EQ(SignalInWords(99), "signal 99");
  EXPECT_EQ(ErrorInWords(ENOENT), "No such file or directory");
  EXPECT_EQ(ErrorInWords(9999), "error 9999");
}

}  // namespace
}  // namespace farandole
