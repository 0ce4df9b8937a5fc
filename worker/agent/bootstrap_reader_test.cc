#include "worker/agent/bootstrap_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/v1/bootstrap.pb.h"
#include "tools/base/clock.h"
#include "tools/base/testing/status_matchers.h"
#include "tools/base/unique_fd.h"

namespace farandole {
namespace {

using ::farandole::testing::IsOk;
using ::farandole::testing::StatusIs;
using ::testing::HasSubstr;

std::string Framed(const std::string& body) {
  const auto size = static_cast<uint32_t>(body.size());
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(size >> shift & 0xff);
  return bytes + body;
}

std::string Sound() {
  v1::AgentBootstrap proto;
  proto.set_job("j");
  proto.set_host("a");
  proto.set_incarnation(9);
  proto.set_driver_address("unix-abstract:x");
  proto.set_job_key(std::string(32, 's'));
  proto.set_data_address("127.0.0.1");
  proto.mutable_grace()->set_seconds(5);
  return proto.SerializeAsString();
}

struct Pipe {
  Pipe() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    read.reset(ends[0]);
    write.reset(ends[1]);
  }
  void Write(const std::string& bytes) {
    EXPECT_EQ(::write(write.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  UniqueFd read, write;
};

absl::StatusOr<Bootstrap> ReadAll(const std::string& bytes) {
  Pipe pipe;
  pipe.Write(bytes);
  pipe.write.reset();
  return ReadBootstrap(pipe.read.get(), Now() + absl::Seconds(20));
}

TEST(ReadBootstrap, LeavesWhatFollows) {
  Pipe pipe;
  pipe.Write(Framed(Sound()) + "rest");
  ASSERT_OK_AND_ASSIGN(const Bootstrap bootstrap, ReadBootstrap(pipe.read.get(), Now() + absl::Seconds(20)));
  EXPECT_EQ(bootstrap.host, "a");
  EXPECT_EQ(bootstrap.job_key, std::string(32, 's'));
  char rest[5];
  EXPECT_EQ(::read(pipe.read.get(), rest, sizeof rest), 4);
}

TEST(ReadBootstrap, SaysWhatIsWrong) {
  const std::string sound = Framed(Sound());
  EXPECT_THAT(ReadAll(""), StatusIs(absl::StatusCode::kUnavailable, "the length: it ended after 0 of 4 bytes"));
  EXPECT_THAT(ReadAll(sound.substr(0, sound.size() - 1)),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("the message: it ended after")));
  EXPECT_THAT(ReadAll(std::string("\x7f\xff\xff\xff", 4)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("2147483647 bytes long")));
  EXPECT_THAT(ReadAll(Framed("\xff\xff")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no AgentBootstrap")));
  EXPECT_THAT(ReadAll(Framed("")), StatusIs(absl::StatusCode::kInvalidArgument, "job is empty"));
}

TEST(ReadBootstrap, EndsAtItsDeadline) {
  Pipe pipe;
  pipe.Write(Framed(Sound()).substr(0, 6));
  EXPECT_THAT(ReadBootstrap(pipe.read.get(), Now() + absl::Milliseconds(20)),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
}

}  // namespace
}  // namespace farandole
