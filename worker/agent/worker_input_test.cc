#include "worker/agent/worker_input.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::StatusIs;
using ::testing::HasSubstr;

std::string ReadToEnd(const UniqueFd& fd) {
  std::string text;
  char buffer[65536];
  for (ssize_t n; (n = ::read(fd.get(), buffer, sizeof buffer)) > 0;) text.append(buffer, n);
  return text;
}

TEST(WorkerInput, EachReaderHasAllOfItFromTheFirstByte) {
  WorkerInput input;
  const std::string large(1 << 20, '\0');
  ASSERT_OK(input.Append("one\n"));
  ASSERT_OK(input.Append(large));
  ASSERT_OK_AND_ASSIGN(const UniqueFd first, input.Open());
  ASSERT_OK_AND_ASSIGN(const UniqueFd second, input.Open());
  EXPECT_TRUE(ReadToEnd(first) == "one\n" + large);
  EXPECT_TRUE(ReadToEnd(second) == "one\n" + large);
}

TEST(WorkerInput, WithoutAPieceItIsEmpty) {
  WorkerInput input;
  ASSERT_OK_AND_ASSIGN(const UniqueFd fd, input.Open());
  EXPECT_EQ(ReadToEnd(fd), "");
}

TEST(WorkerInput, AReaderCannotChangeItForTheOthers) {
  WorkerInput input;
  ASSERT_OK(input.Append("all"));
  ASSERT_OK_AND_ASSIGN(const UniqueFd fd, input.Open());
  EXPECT_EQ(::write(fd.get(), "x", 1), -1);
  const UniqueFd writable(::open(absl::StrCat("/proc/self/fd/", fd.get()).c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(writable) << "root, and the owner, may";
  EXPECT_EQ(::write(writable.get(), "x", 1), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(::ftruncate(writable.get(), 0), -1);
  EXPECT_EQ(ReadToEnd(fd), "all");
}

TEST(WorkerInput, ItIsBounded) {
  WorkerInput input(5);
  ASSERT_OK(input.Append("1234"));
  EXPECT_THAT(input.Append("56"), StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("more than 5 bytes")));
  EXPECT_FALSE(input.Append("5").ok()) << "a piece is missing";
  EXPECT_THAT(input.Open(), StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST(WorkerInput, NothingFollowsAReader) {
  WorkerInput input;
  ASSERT_OK(input.Append("a"));
  ASSERT_OK(input.Open().status());
  EXPECT_THAT(input.Append("b"), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(input.Open(), StatusIs(absl::StatusCode::kFailedPrecondition));
}

}  // namespace
}  // namespace farandole
