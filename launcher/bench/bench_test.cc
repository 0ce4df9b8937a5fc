// `farandole bench` from its command line to its output, with real processes.
#include "launcher/bench/bench.h"

#include <signal.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launcher/bench/forked_group.h"
#include "nlohmann/json.hpp"

namespace farandole {
namespace {

using ::testing::SizeIs;

std::vector<nlohmann::json> Measure(std::vector<std::string> arguments) {
  for (const char* more : {"--json", "--seconds", "0.001"}) arguments.push_back(more);
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(RunBench(arguments), 0);
  std::vector<nlohmann::json> lines;
  for (absl::string_view line : absl::StrSplit(::testing::internal::GetCapturedStdout(), '\n', absl::SkipEmpty())) {
    lines.push_back(nlohmann::json::parse(line));
  }
  return lines;
}

TEST(Bench, EveryOperationOverEveryTransportPrintsALineForEachSize) {
  for (const char* transport : {"shm", "tcp"}) {
    for (const char* op : {"allreduce", "allgather", "broadcast", "alltoall", "reducescatter"}) {
      const auto lines = Measure({op, "--np", "3", "--bytes", "0,4,100K", "--transport", transport});
      ASSERT_THAT(lines, SizeIs(3)) << op << " " << transport;
      EXPECT_EQ(lines[2]["op"], op);
      EXPECT_EQ(lines[2]["np"], 3);
      EXPECT_EQ(lines[2]["bytes"], 100 << 10);
      EXPECT_EQ(lines[2]["transport"], transport);
      EXPECT_GT(lines[2]["median_us"], 0);
      EXPECT_GE(lines[2]["p99_us"], lines[2]["median_us"]);
      EXPECT_GT(lines[2]["bytes_per_second"], 0);
    }
    EXPECT_THAT(Measure({"barrier", "--np", "3", "--transport", transport}), SizeIs(1));
  }
}

TEST(Bench, ThroughTheEngine) {
  const auto lines = Measure({"allreduce", "--engine", "--tensors", "10", "--bytes", "4000"});
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_EQ(lines[0]["engine"], true);
  EXPECT_EQ(lines[0]["tensors"], 10);
}

TEST(Bench, MoreThanThereIsMemoryForIsRefusedBeforeAnythingStarts) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(RunBench({"allreduce", "--np", "1000", "--bytes", "1024G"}), 2);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), ::testing::HasSubstr("memory"));
}

TEST(ForkedGroup, TheFirstThatFailsEndsTheOthersAndIsNamed) {
  const auto body = [](const ForkedMember& member) -> absl::Status {
    if (member.spec.rank == 1) return absl::UnavailableError("on purpose");
    while (true) ::pause();
  };
  const absl::Status status = RunForkedGroup(3, TransportChoice::kShm, body);
  EXPECT_THAT(status.message(), ::testing::HasSubstr("rank 1 failed"));
  const auto killed = [](const ForkedMember& member) -> absl::Status {
    if (member.spec.rank == 2) ::raise(SIGKILL);
    while (true) ::pause();
  };
  EXPECT_THAT(RunForkedGroup(3, TransportChoice::kShm, killed).message(),
              ::testing::HasSubstr("rank 2 was killed by signal 9"));
}

TEST(Bench, ACommandLineThatMeansNothing) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(RunBench({"nothing"}), 2);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), ::testing::HasSubstr("usage: farandole bench"));
}

}  // namespace
}  // namespace farandole
