#include "launcher/plan/environment.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace farandole {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;
using ::testing::StartsWith;

Placement Place() {
  Placement place;
  place.rank = 3, place.size = 8;
  place.local_rank = 1, place.local_size = 2;
  place.cross_rank = 2, place.cross_size = 4;
  return place;
}

TEST(WorkerEnvironment, OfAnEmptyLauncherIsWhatTheOriginalSets) {
  EXPECT_THAT(WorkerEnvironment({{}, "lo"}, "gpu7", Place()),
              ElementsAre("HOROVOD_CONTROLLER=gloo", "HOROVOD_CPU_OPERATIONS=gloo", "HOROVOD_CROSS_RANK=2",
                          "HOROVOD_CROSS_SIZE=4", "HOROVOD_GLOO_IFACE=lo", "HOROVOD_HOSTNAME=gpu7",
                          "HOROVOD_LOCAL_RANK=1", "HOROVOD_LOCAL_SIZE=2", "HOROVOD_RANK=3", "HOROVOD_SIZE=8",
                          "NCCL_SOCKET_IFNAME=lo", "PYTHONUNBUFFERED=1"));
}

TEST(WorkerEnvironment, CarriesEveryByteOfTheLaunchers) {
  const std::vector<std::string> inherited = {"PATH=/bin:/usr/bin",
                                              "EMPTY=",
                                              "TWO=a=b",
                                              "LINE=a\nb",
                                              "BYTES=\xff\x01",
                                              "BASH_FUNC_f%%=() { :; }",
                                              "CUDA_VISIBLE_DEVICES=3",
                                              "LONG=" + std::string(300'000, 'x')};
  const std::vector<std::string> made = WorkerEnvironment({inherited, "lo"}, "a", Place());
  for (const std::string& entry : inherited) EXPECT_THAT(made, Contains(entry));
  EXPECT_TRUE(std::is_sorted(made.begin(), made.end(), [](const std::string& a, const std::string& b) {
    return a.substr(0, a.find('=')) < b.substr(0, b.find('='));
  }));
}

TEST(WorkerEnvironment, ThePlaceReplacesTheLaunchersAndTheUsersInterfaceStays) {
  const std::vector<std::string> made = WorkerEnvironment(
      {{"HOROVOD_RANK=77", "PYTHONUNBUFFERED=0", "HOROVOD_GLOO_IFACE=eth0", "NCCL_SOCKET_IFNAME=ib0", "X=1", "X=2"},
       "lo"},
      "a", Place());
  EXPECT_THAT(made, Contains("HOROVOD_RANK=3"));
  EXPECT_THAT(made, Not(Contains("HOROVOD_RANK=77")));
  EXPECT_THAT(made, Contains("PYTHONUNBUFFERED=1"));
  EXPECT_THAT(made, Contains("HOROVOD_GLOO_IFACE=eth0"));
  EXPECT_THAT(made, Contains("NCCL_SOCKET_IFNAME=ib0"));
  EXPECT_THAT(made, Contains("X=2"));
  EXPECT_THAT(made, Not(Contains("X=1")));
}

TEST(WorkerEnvironment, WhatAnOuterAgentToldTheLauncherAndWhatHasNoNameIsLeftOut) {
  const std::vector<std::string> made =
      WorkerEnvironment({{"FARANDOLE_AGENT=unix-abstract:x", "FARANDOLE_WORKER=01", "FARANDOLE_DATA_ADDRESS=::1",
                          "FARANDOLE_TRANSPORT=tcp", "=x", "nothing", ""},
                         "lo"},
                        "a", Place());
  EXPECT_THAT(made, Contains("FARANDOLE_TRANSPORT=tcp"));
  for (const char* prefix : {"FARANDOLE_AGENT", "FARANDOLE_WORKER", "FARANDOLE_DATA_ADDRESS", "=", "nothing"}) {
    EXPECT_THAT(made, Not(Contains(StartsWith(prefix)))) << prefix;
  }
  EXPECT_EQ(made.size(), 13u);
}

}  // namespace
}  // namespace farandole
