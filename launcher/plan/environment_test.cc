#include "launcher/plan/environment.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::IsOk;
using ::farandole::testing::StatusIs;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::StartsWith;

Placement Place() {
  Placement place;
  place.rank = 3, place.size = 8;
  place.local_rank = 1, place.local_size = 2;
  place.cross_rank = 2, place.cross_size = 4;
  return place;
}

std::vector<std::string> Made(const JobEnvironment& job, const WorkerHost& host = {"a", false, {"lo"}}) {
  return WorkerEnvironments(job).For(host, Place());
}

TEST(WorkerEnvironments, OfAnEmptyLauncherAreWhatTheOriginalSets) {
  EXPECT_THAT(Made({}, {"gpu7", false, {"eth0", "ib0"}}),
              ElementsAre("HOROVOD_CONTROLLER=gloo", "HOROVOD_CPU_OPERATIONS=gloo", "HOROVOD_CROSS_RANK=2",
                          "HOROVOD_CROSS_SIZE=4", "HOROVOD_GLOO_IFACE=eth0", "HOROVOD_HOSTNAME=gpu7",
                          "HOROVOD_LOCAL_RANK=1", "HOROVOD_LOCAL_SIZE=2", "HOROVOD_RANK=3", "HOROVOD_SIZE=8",
                          "NCCL_SOCKET_IFNAME=eth0,ib0", "PYTHONUNBUFFERED=1"));
}

const std::vector<std::string>& Inherited() {
  static const auto* const kInherited = new std::vector<std::string>{
      "PATH=/bin:/usr/bin", "EMPTY=", "TWO=a=b", "LINE=a\nb", "BYTES=\xff\x01", "API_TOKEN=secret"};
  return *kInherited;
}
const std::vector<std::string>& OnlyHere() {
  static const auto* const kOnlyHere =
      new std::vector<std::string>{"BASH_FUNC_f%%=() { :; }", "OLDPWD=/x", "CUDA_VISIBLE_DEVICES=3",
                                   "NV_CUDA_VISIBLE_DEVICES_X=1", "_HOROVOD_SECRET_KEY=k"};
  return *kOnlyHere;
}

TEST(WorkerEnvironments, CarryEveryByteOfTheLaunchersSortedByName) {
  JobEnvironment job{Inherited()};
  job.inherited.insert(job.inherited.end(), OnlyHere().begin(), OnlyHere().end());
  const std::vector<std::string> made = Made(job);
  EXPECT_THAT(made, IsSupersetOf(Inherited()));
  EXPECT_THAT(made, IsSupersetOf(OnlyHere()));
  EXPECT_TRUE(std::is_sorted(made.begin(), made.end(), [](const std::string& a, const std::string& b) {
    return a.substr(0, a.find('=')) < b.substr(0, b.find('='));
  }));
}

TEST(WorkerEnvironments, SomeNamesDoNotTravelUnlessGiven) {
  JobEnvironment job{Inherited()};
  job.inherited.insert(job.inherited.end(), OnlyHere().begin(), OnlyHere().end());
  const WorkerHost far{"far", true};
  std::vector<std::string> made = Made(job, far);
  EXPECT_THAT(made, IsSupersetOf(Inherited()));
  for (const std::string& entry : OnlyHere()) EXPECT_THAT(made, Not(Contains(entry)));
  EXPECT_THAT(WorkerEnvironments(job).Names(true).kept_home,
              ElementsAre("BASH_FUNC_f%%", "CUDA_VISIBLE_DEVICES", "NV_CUDA_VISIBLE_DEVICES_X", "OLDPWD",
                          "_HOROVOD_SECRET_KEY"));
  job.given = {"CUDA_VISIBLE_DEVICES=0,1"};
  EXPECT_THAT(Made(job, far), Contains("CUDA_VISIBLE_DEVICES=0,1"));
}

TEST(WorkerEnvironments, ThePlaceIsStrongestThenWhatIsGivenThenOptionsThenWhatIsInherited) {
  JobEnvironment job{{"HOROVOD_RANK=77", "PYTHONUNBUFFERED=0", "A=inherited", "B=inherited", "C=inherited", "C=later",
                      "HOROVOD_CYCLE_TIME=5"}};
  job.worker_variables = {"A=option", "B=option", "HOROVOD_CYCLE_TIME=20.0"};
  job.given = {"A=given"};
  EXPECT_THAT(Made(job), AllOf(IsSupersetOf({"HOROVOD_RANK=3", "PYTHONUNBUFFERED=1", "A=given", "B=option", "C=later",
                                             "HOROVOD_CYCLE_TIME=20.0"}),
                               Not(Contains("HOROVOD_RANK=77"))));
  EXPECT_EQ(Made(job).size(), 16u);
}

TEST(WorkerEnvironments, DeniedNamesReachNoWorkerUnlessGiven) {
  JobEnvironment job{Inherited()};
  job.denied = {"API_*", "T?O"};
  for (const bool remote : {false, true}) {
    const std::vector<std::string> made = Made(job, {"a", remote});
    EXPECT_THAT(made, Not(Contains(StartsWith("API_TOKEN"))));
    EXPECT_THAT(made, Not(Contains(StartsWith("TWO"))));
    EXPECT_THAT(made, Contains("EMPTY="));
    EXPECT_THAT(WorkerEnvironments(job).Names(remote).kept_home, ElementsAre("API_TOKEN", "TWO"));
  }
  job.given = {"API_TOKEN=given"};
  EXPECT_THAT(Made(job), Contains("API_TOKEN=given"));
}

TEST(WorkerEnvironments, AnInheritedInterfaceStaysUnlessAPersonChoseOne) {
  const JobEnvironment job{{"HOROVOD_GLOO_IFACE=eth0", "NCCL_SOCKET_IFNAME=ib0"}};
  EXPECT_THAT(Made(job), IsSupersetOf({"HOROVOD_GLOO_IFACE=eth0", "NCCL_SOCKET_IFNAME=ib0"}));
  EXPECT_THAT(Made(job, {"a", true, {"eth9"}, true}),
              IsSupersetOf({"HOROVOD_GLOO_IFACE=eth9", "NCCL_SOCKET_IFNAME=eth9"}));
  EXPECT_THAT(Made({}, {"a", true}), Not(Contains(StartsWith("NCCL_SOCKET_IFNAME"))));
}

TEST(WorkerEnvironments, WhatAnOuterAgentToldTheLauncherAndWhatHasNoNameIsLeftOut) {
  const std::vector<std::string> made = Made(
      {{"FARANDOLE_AGENT=unix-abstract:x", "FARANDOLE_WORKER=01", "FARANDOLE_DATA_ADDRESS=::1", "FARANDOLE_RESULT_FD=3",
        "FARANDOLE_FUNCTION_FOLDER=/tmp/f", "FARANDOLE_TRANSPORT=tcp", "=x", "nothing", ""}});
  EXPECT_THAT(made, Contains("FARANDOLE_TRANSPORT=tcp"));
  for (const char* prefix : {"FARANDOLE_AGENT", "FARANDOLE_WORKER", "FARANDOLE_DATA_ADDRESS", "FARANDOLE_RESULT_FD",
                             "FARANDOLE_FUNCTION_FOLDER", "=", "nothing"}) {
    EXPECT_THAT(made, Not(Contains(StartsWith(prefix)))) << prefix;
  }
  EXPECT_EQ(made.size(), 13u);
}

TEST(WorkerEnvironments, NamesAreOfEveryVariableAndHaveNoValues) {
  JobEnvironment job{{"PATH=/bin", "HOROVOD_RANK=1", "X=secret"}};
  job.given = {"Y=secret"};
  const EnvironmentNames names = WorkerEnvironments(job).Names(false);
  EXPECT_THAT(names.set,
              ElementsAre("HOROVOD_CONTROLLER", "HOROVOD_CPU_OPERATIONS", "HOROVOD_CROSS_RANK", "HOROVOD_CROSS_SIZE",
                          "HOROVOD_GLOO_IFACE", "HOROVOD_HOSTNAME", "HOROVOD_LOCAL_RANK", "HOROVOD_LOCAL_SIZE",
                          "HOROVOD_RANK", "HOROVOD_SIZE", "NCCL_SOCKET_IFNAME", "PYTHONUNBUFFERED", "Y"));
  EXPECT_THAT(names.inherited, ElementsAre("PATH", "X"));
  EXPECT_THAT(names.kept_home, ElementsAre());
  EXPECT_EQ(names.set.size() + names.inherited.size(), Made(job).size());
}

TEST(WorkerEnvironments, AVariableThatLinuxDoesNotTakeIsRefusedByNameBeforeAnythingStarts) {
  const std::string most(kMaxVariableBytes - 3, 's');  // "X=" and the end
  EXPECT_THAT(WorkerEnvironments({{"X=" + most}}).CheckLimits(true, true), IsOk());
  const WorkerEnvironments over({{"X=" + most + "s", "Y=1"}});
  EXPECT_THAT(over.CheckLimits(true, false),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "the variable \"X\" has 131073 bytes with its name, and Linux starts no program with more than "
                       "131072 in one; keep it home with --env-deny \"X\", or put the text into a file"));
  EXPECT_FALSE(over.CheckLimits(false, true).ok());
  EXPECT_THAT(over.CheckLimits(false, false), IsOk());
  EXPECT_THAT(WorkerEnvironments({{"X=" + most + "s"}, {}, {}, {"X"}}).CheckLimits(true, true), IsOk());
  // What does not travel may be large elsewhere.
  const WorkerEnvironments function({{"BASH_FUNC_f%%=" + most}});
  EXPECT_FALSE(function.CheckLimits(true, true).ok());
  EXPECT_THAT(function.CheckLimits(false, true), IsOk());
  EXPECT_THAT(WorkerEnvironments({{"TOKEN=" + most}}).CheckLimits(true, true),
              StatusIs(absl::StatusCode::kInvalidArgument, Not(HasSubstr("sss"))));
}

}  // namespace
}  // namespace farandole
