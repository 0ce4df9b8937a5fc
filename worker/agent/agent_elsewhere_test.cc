// An agent on another machine than its driver.

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "driver/security/job_authority.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/clock.h"
#include "tools/base/testing/status_matchers.h"
#include "worker/agent/testing/agent_fixture.h"

namespace farandole {
namespace {

using ::farandole::testing::AgentProcess;
using ::farandole::testing::AgentTest;
using ::farandole::testing::Ends;
using ::farandole::testing::FakeDriver;
using ::farandole::testing::IsOk;
using ::farandole::testing::kOut;
using ::farandole::testing::kStubborn;
using ::farandole::testing::Messages;
using ::testing::HasSubstr;

// Agents and a driver of one job or of two.
class AgentElsewhereTest : public AgentTest {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(authority_, JobAuthority::Create("job"));
    driver_ = FakeDriver::StartTls(*authority_);
  }

  // Finds nothing at its first address, and the driver at its second.
  void StartElsewhere(absl::Duration lost_after = absl::Seconds(30)) {
    ASSERT_OK_AND_ASSIGN(const TlsIdentity identity, authority_->IssueAgent("a", Incarnation(77)));
    v1::AgentBootstrap bootstrap = Bootstrap();
    bootstrap.add_driver_addresses("127.0.0.1:1");
    bootstrap.add_driver_addresses(driver_->address());
    bootstrap.set_ca_certificate(identity.ca_pem);
    bootstrap.set_certificate(identity.certificate_pem);
    bootstrap.set_private_key(identity.private_key_pem);
    bootstrap.mutable_lost_after()->set_seconds(absl::ToInt64Seconds(lost_after));
    agent_ = std::make_unique<AgentProcess>(bootstrap.SerializeAsString());
  }
  void StartElsewhereAndWelcome(absl::Duration lost_after = absl::Seconds(30)) {
    StartElsewhere(lost_after);
    ASSERT_TRUE(driver_->Await([](const Messages& messages) { return !messages.empty(); })) << agent_->Said();
    Welcome(1 << 20);
  }

  std::unique_ptr<JobAuthority> authority_;
};

TEST_F(AgentElsewhereTest, ProvesItselfAndFindsTheAddressThatWorks) {
  StartElsewhereAndWelcome();
  SpawnShell(0, "echo here; exit 3");
  ASSERT_TRUE(AwaitOutputEnded(0));
  EXPECT_EQ(driver_->Output(0, kOut), "here\n");
  SpawnShell(1, kStubborn);
  const std::vector<pid_t> pids = AwaitPids(1, 3);
  driver_ = nullptr;
  EXPECT_EQ(agent_->Wait(), 1);
  for (const pid_t pid : pids) EXPECT_TRUE(Ends(pid)) << pid;
}

TEST_F(AgentElsewhereTest, WhoFindsNoDriverSaysWhereItLookedAndWhatItGot) {
  ASSERT_OK_AND_ASSIGN(authority_, JobAuthority::Create("job"));  // another than the driver's
  StartElsewhere();
  EXPECT_EQ(agent_->Wait(), 1);
  const std::string said = agent_->Said();
  EXPECT_THAT(said, HasSubstr("cannot call back the driver from host a: 127.0.0.1:1: "));
  EXPECT_THAT(said, HasSubstr("onnection refused; " + driver_->address() + ": "));
  EXPECT_THAT(said, HasSubstr("certificate verify failed"));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

// A link that is cut without a word takes a network of one's own: this program again, in one.
TEST_F(AgentElsewhereTest, ADeadLinkIsALostDriver) {
  if (std::system("unshare --net true 2> /dev/null") != 0) GTEST_SKIP() << "no right to make a network namespace";
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  EXPECT_EQ(std::system(absl::StrCat("unshare --net sh -c 'ip link set lo up && exec ", self,
                                     " --gtest_filter=AgentElsewhereTest.DISABLED_LosesItsLink"
                                     " --gtest_also_run_disabled_tests'")
                            .c_str()),
            0);
}

// Not a test by itself: the other process of the one above.
TEST_F(AgentElsewhereTest, DISABLED_LosesItsLink) {
  StartElsewhereAndWelcome(absl::Seconds(1));
  SpawnShell(0, kStubborn);
  const std::vector<pid_t> pids = AwaitPids(0, 3);
  ASSERT_TRUE(driver_->AwaitHeartbeats(3));
  ASSERT_EQ(std::system("ip link set lo down"), 0);
  const Instant cut = Now();
  EXPECT_EQ(agent_->Wait(), 1);
  EXPECT_LT(Now() - cut, absl::Seconds(10));
  EXPECT_THAT(agent_->Said(), HasSubstr("the driver is gone"));
  for (const pid_t pid : pids) EXPECT_TRUE(Ends(pid)) << pid;
}

}  // namespace
}  // namespace farandole
