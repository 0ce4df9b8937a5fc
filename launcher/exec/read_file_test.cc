#include "launcher/exec/read_file.h"

#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::IsOkAndHolds;
using ::farandole::testing::StatusIs;

TEST(ReadFile, GivesEveryByte) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/read_file_test"), text(200'000, '\0');
  std::ofstream(path, std::ios::binary) << text;
  EXPECT_THAT(ReadFile(path), IsOkAndHolds(text));
}

TEST(ReadFile, ErrorsHaveThePath) {
  EXPECT_THAT(ReadFile("/nowhere/h"),
              StatusIs(absl::StatusCode::kNotFound, "open /nowhere/h: No such file or directory"));
  EXPECT_THAT(ReadFile("/tmp"), StatusIs(absl::StatusCode::kFailedPrecondition, "read /tmp: Is a directory"));
  EXPECT_THAT(ReadFile("/dev/zero"), StatusIs(absl::StatusCode::kOutOfRange, "read /dev/zero: larger than 16 MiB"));
}

}  // namespace
}  // namespace farandole
