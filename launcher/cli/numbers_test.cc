#include "launcher/cli/numbers.h"

#include <string>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::IsOkAndHolds;
using ::farandole::testing::StatusIs;

constexpr auto kWrong = absl::StatusCode::kInvalidArgument;

TEST(Numbers, WholeOnes) {
  EXPECT_THAT(WholeNumber({"0", "-x"}, 0, 10), IsOkAndHolds(0));
  EXPECT_THAT(WholeNumber({"10", "-x"}, 0, 10), IsOkAndHolds(10));
  EXPECT_THAT(WholeNumber({"+7", "-x"}, 0, 10), IsOkAndHolds(7));
  EXPECT_THAT(WholeNumber({" 007 ", "-x"}, 0, 10), IsOkAndHolds(7));
  EXPECT_THAT(WholeNumber({"-3", "-x"}, -5, 10), IsOkAndHolds(-3));
  EXPECT_THAT(WholeNumber({"11", "-x"}, 0, 10), StatusIs(kWrong, "-x 11: more than 10"));
  EXPECT_THAT(WholeNumber({"99999999999999999999", "-x"}, 0, 10),
              StatusIs(kWrong, "-x 99999999999999999999: more than 10"));
  EXPECT_THAT(WholeNumber({"-1", "-x"}, 0, 10), StatusIs(kWrong, "-x -1: must be at least 0"));
  EXPECT_THAT(WholeNumber({"-99999999999999999999", "-x"}, 0, 10),
              StatusIs(kWrong, "-x -99999999999999999999: must be at least 0"));
  for (const char* text : {"", "-", "x", "1.0", "1e3", "0x10", "1 2", "--1", "1_0"}) {
    EXPECT_THAT(WholeNumber({text, "-x"}, 0, 10),
                StatusIs(kWrong, "-x \"" + std::string(text) + "\" is not a whole number"));
  }
}

TEST(Numbers, RealOnes) {
  EXPECT_THAT(RealNumber({"0.5", "-x"}, 0, 1), IsOkAndHolds(0.5));
  EXPECT_THAT(RealNumber({"1e-3", "-x"}, 0, 1), IsOkAndHolds(0.001));
  EXPECT_THAT(RealNumber({"1.5", "-x"}, 0, 1), StatusIs(kWrong, "-x 1.5: more than 1"));
  EXPECT_THAT(RealNumber({"-0.1", "-x"}, 0, 1), StatusIs(kWrong, "-x -0.1: must be at least 0"));
  for (const char* text : {"", "x", "nan", "inf", "-inf", "1e999", "1,5"}) {
    EXPECT_THAT(RealNumber({text, "-x"}, 0, 1), StatusIs(kWrong, "-x \"" + std::string(text) + "\" is not a number"));
  }
}

TEST(Numbers, AreShownAsPythonShowsThem) {
  const std::pair<double, std::string> kCases[] = {
      {20, "20.0"},
      {0, "0.0"},
      {0.1, "0.1"},
      {2.5, "2.5"},
      {100000, "100000.0"},
      {1e15, "1000000000000000.0"},
      {1e16, "1e+16"},
      {1.5e22, "1.5e+22"},
      {0.0001, "0.0001"},
      {0.00001, "1e-05"},
      {1.0 / 3, "0.3333333333333333"},
      {123456.789, "123456.789"},
      {1e100, "1e+100"},
  };
  for (const auto& [number, text] : kCases) EXPECT_EQ(PythonFloat(number), text);
}

}  // namespace
}  // namespace farandole
