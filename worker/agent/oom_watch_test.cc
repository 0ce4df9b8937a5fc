#include "worker/agent/oom_watch.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace farandole {
namespace {

class OomWatchTest : public ::testing::Test {
 protected:
  OomWatchTest() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    root_ = absl::StrCat(::testing::TempDir(), "/", test->name());
    Write("/proc/self/cgroup", "12:cpu:/x\n0::/job.slice/run\n");
    SetMachine(100);
    SetGroup(5);
  }
  ~OomWatchTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void SetMachine(int count) {
    Write("/proc/vmstat", absl::StrCat("nr_free_pages 7\noom_kill ", count, "\nnuma_hit 0\n"));
  }
  void SetGroup(int count) {
    Write("/sys/fs/cgroup/job.slice/run/memory.events",
          absl::StrCat("max 9\noom ", count + 1, "\noom_kill ", count, "\n"));
  }

  std::string root_;
};

TEST_F(OomWatchTest, CountsWhatTheGroupLost) {
  OomWatch watch(root_);
  EXPECT_FALSE(watch.Claim());
  SetMachine(200);
  EXPECT_FALSE(watch.Claim()) << "that was another group's";
  SetGroup(7);
  EXPECT_TRUE(watch.Claim());
  EXPECT_TRUE(watch.Claim()) << "two may have been killed at once";
  EXPECT_FALSE(watch.Claim());
}

TEST_F(OomWatchTest, WithoutAGroupItIsTheMachinesCount) {
  Write("/proc/self/cgroup", "0::/\n");  // the root has no such file
  OomWatch watch(root_);
  SetMachine(101);
  EXPECT_TRUE(watch.Claim());
  EXPECT_FALSE(watch.Claim());
}

TEST_F(OomWatchTest, WithoutAnyCountNothingIsClaimed) {
  std::filesystem::remove_all(root_);
  OomWatch watch(root_);
  SetMachine(1000);
  EXPECT_FALSE(watch.Claim());
}

TEST(OomWatch, ReadsThisMachine) { EXPECT_FALSE(OomWatch().Claim()); }

}  // namespace
}  // namespace farandole
