#include "launcher/exec/report.h"

#include <csignal>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launcher/exec/signal_name.h"

namespace farandole {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

WorkerEnd End(int rank, ExitStatus status) {
  WorkerEnd end;
  end.worker = {{"gpu7", rank}, Incarnation(static_cast<uint64_t>(rank) + 1)};
  end.rank = rank;
  end.status = status;
  return end;
}

ReportInputs Inputs(ExitStatus status) {
  ReportInputs inputs;
  inputs.np = 4;
  inputs.zone = absl::UTCTimeZone();
  inputs.verdict.exit_code = status.shell_code();
  inputs.verdict.reason = "rank 3 failed";
  inputs.verdict.has_first_failure = true;
  inputs.verdict.first_failure = End(3, status);
  inputs.last_error_lines = [](const WorkerId& worker) {
    EXPECT_EQ(worker.slot.slot, 3);
    return std::vector<std::string>{"Traceback", "ValueError: boom"};
  };
  return inputs;
}

TEST(Report, OfASuccessIsNothing) { EXPECT_EQ(FinalReport({}), ""); }

TEST(Report, NamesTheFirstFailureItsLastWordsTheFollowOnsAndTheRest) {
  ReportInputs inputs = Inputs({7, 0});
  inputs.failed_at = absl::FromCivil(absl::CivilSecond(2026, 1, 2, 14, 3, 22), absl::UTCTimeZone());
  inputs.verdict.follow_ons = {End(1, {1, 0}), End(2, {0, SIGABRT})};
  EXPECT_EQ(FinalReport(inputs),
            "farandole: rank 3 (host gpu7, local rank 3) failed first: exit code 7, at 14:03:22\n"
            "  its last lines on stderr:\n"
            "    Traceback\n"
            "    ValueError: boom\n"
            "  after it rank 1 (host gpu7, local rank 1): exit code 1\n"
            "  after it rank 2 (host gpu7, local rank 2): ended by SIGABRT\n"
            "  the remaining 1 other had finished or was told to end\n"
            "farandole: rank 3 failed; exit code 7");
}

TEST(Report, OfASilentWorkerSaysSo) {
  ReportInputs inputs = Inputs({3, 0});
  inputs.last_error_lines = [](const WorkerId&) { return std::vector<std::string>(); };
  EXPECT_EQ(FinalReport(inputs),
            "farandole: rank 3 (host gpu7, local rank 3) failed first: exit code 3\n"
            "  it wrote nothing to stderr\n"
            "  the 3 others had finished or were told to end\n"
            "farandole: rank 3 failed; exit code 3");
}

TEST(Report, NamesSignalsAndWhatAKillOftenMeans) {
  EXPECT_THAT(FinalReport(Inputs({0, SIGSEGV})), HasSubstr("failed first: ended by SIGSEGV\n  its last"));
  EXPECT_THAT(FinalReport(Inputs({0, SIGKILL})),
              HasSubstr("ended by SIGKILL\n  (nobody in this job sent it, and the kernel has counted no kill"));
  ReportInputs inputs = Inputs({0, SIGKILL});
  inputs.verdict.first_failure.out_of_memory = true;
  EXPECT_THAT(FinalReport(inputs), HasSubstr("ended by SIGKILL\n  likely out of memory: "));
  EXPECT_EQ(SignalName(64), "signal 64");
}

TEST(Report, AProgramThatCannotBeExecutedHasItsHostPathAndReason) {
  ReportInputs inputs = Inputs({127, 0});
  inputs.verdict.first_failure.what = "/x/train: No such file or directory";
  inputs.verdict.follow_ons = {End(1, {127, 0})};
  inputs.verdict.follow_ons[0].what = inputs.verdict.first_failure.what;
  const std::string report = FinalReport(inputs);
  EXPECT_THAT(report, HasSubstr("\n  after it rank 1 (host gpu7, local rank 1): could not be executed either\n"));
  EXPECT_THAT(report, StartsWith("farandole: rank 3 (host gpu7, local rank 3) failed first: could not be executed: "
                                 "/x/train: No such file or directory\n"));
  EXPECT_THAT(report, Not(HasSubstr("stderr")));
}

TEST(Report, WithoutAFailedWorkerIsTheReason) {
  ReportInputs inputs;
  inputs.verdict.exit_code = 130;
  inputs.verdict.reason = "interrupted by Ctrl-C";
  EXPECT_EQ(FinalReport(inputs), "farandole: interrupted by Ctrl-C; exit code 130");
}

TEST(Report, SaysWhereEachHostStoppedThatWasNotReady) {
  ReportInputs inputs;
  inputs.verdict.exit_code = 1;
  inputs.verdict.reason = "2 of 9 hosts were not ready within 30s";
  inputs.verdict.not_up = {{"gpu7", HostStep::kConnect, "port 22: Connection refused, attempt 9"},
                           {"b", HostStep::kCallBack, ""}};
  EXPECT_EQ(FinalReport(inputs),
            "  host  stopped at    because\n"
            "  gpu7  connect       port 22: Connection refused, attempt 9\n"
            "  b     call back     nothing came back\n"
            "farandole: 2 of 9 hosts were not ready within 30s; exit code 1");
}

TEST(Report, NamesWhoOverranTheGrace) {
  ReportInputs inputs;
  inputs.verdict.exit_code = 143;
  inputs.verdict.reason = "the job was interrupted by SIGTERM";
  inputs.verdict.overran = {End(1, {0, 0})};
  EXPECT_EQ(
      FinalReport(inputs),
      "farandole: rank 1 (host gpu7, local rank 1) was still there when its grace after SIGTERM was over, and was "
      "killed\nfarandole: the job was interrupted by SIGTERM; exit code 143");
}

TEST(Report, ColoursOnlyOnATerminal) {
  ReportInputs inputs = Inputs({7, 0});
  EXPECT_THAT(FinalReport(inputs), Not(HasSubstr("\x1b")));
  inputs.colour = true;
  EXPECT_THAT(FinalReport(inputs),
              StartsWith("farandole: \x1b[1;31mrank 3 (host gpu7, local rank 3) failed first: exit "
                         "code 7\x1b[0m"));
}

}  // namespace
}  // namespace farandole
