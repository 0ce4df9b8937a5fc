// What a job that runs a function needs of an agent: every worker reads the same input, and writes a result.

#include <cerrno>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/agent/testing/agent_fixture.h"

namespace farandole {
namespace {

using ::farandole::testing::AgentTest;
using ::farandole::testing::Fill;
using ::farandole::testing::FillAlone;
using ::farandole::testing::HasOutputEnded;
using ::farandole::testing::kOut;
using ::farandole::testing::Messages;
using ::testing::HasSubstr;

constexpr v1::Output::Stream kResult = v1::Output::RESULT;

class AgentFunctionTest : public AgentTest {
 protected:
  void SendInput(const std::string& piece) {
    v1::DriverMessage message;
    message.mutable_input()->set_data(piece);
    driver_->Send(message);
  }

  void SpawnFunction(uint32_t slot, const std::string& script, bool has_input = true, bool wants_result = true) {
    v1::DriverMessage message;
    v1::Spawn* spawn = message.mutable_spawn();
    Fill(slot, spawn->mutable_worker());
    FillAlone(spawn->mutable_placement());
    for (const std::string& argument : {std::string("sh"), std::string("-c"), script}) spawn->add_arguments(argument);
    spawn->add_environment("PATH=/usr/bin:/bin");
    spawn->add_environment("FARANDOLE_RESULT_FD=of an outer job");
    spawn->set_working_directory("/");
    spawn->set_has_input(has_input);
    spawn->set_wants_result(wants_result);
    driver_->Send(message);
  }
};

TEST_F(AgentFunctionTest, EveryWorkerReadsAllAndItsResultComesByteForByte) {
  StartAndWelcome(64 << 10);
  driver_->GiveBackCredit();
  std::string input;
  for (int piece = 0; piece < 5; ++piece) {
    std::string bytes(256 << 10, '\0');
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * i >> 7 ^ piece);
    SendInput(bytes);
    input += bytes;
  }
  for (const uint32_t slot : {0, 1, 2}) SpawnFunction(slot, "echo $FARANDOLE_RESULT_FD; cat >&3; echo done");
  for (const uint32_t slot : {0, 1, 2}) {
    ASSERT_TRUE(AwaitOutputEnded(slot));
    EXPECT_TRUE(driver_->Output(slot, kResult) == input) << driver_->Output(slot, kResult).size() << " bytes";
    EXPECT_EQ(driver_->Output(slot, kOut), "3\ndone\n");
  }
  EndAndExpectZero();
}

TEST_F(AgentFunctionTest, OneWithoutTheOther) {
  StartAndWelcome();
  SendInput("read me");
  SpawnFunction(0, "cat; ls /proc/self/fd", /*has_input=*/true, /*wants_result=*/false);
  SpawnFunction(1, "cat; echo mine >&3", /*has_input=*/false, /*wants_result=*/true);
  for (const uint32_t slot : {0, 1}) ASSERT_TRUE(AwaitOutputEnded(slot));
  EXPECT_EQ(driver_->Output(0, kOut), "read me0\n1\n2\n3\n") << "3 is of ls itself";
  EXPECT_EQ(driver_->Output(1, kOut), "");
  EXPECT_EQ(driver_->Output(1, kResult), "mine\n");
  EndAndExpectZero();
}

TEST_F(AgentFunctionTest, AResultNeedsCreditAndTheEndOfTheOutputWaitsForIt) {
  StartAndWelcome(1000);
  SpawnFunction(0, "head -c 50000 /dev/zero >&3", /*has_input=*/false);
  ASSERT_TRUE(AwaitExit(0));
  ASSERT_TRUE(driver_->AwaitHeartbeats(driver_->Heartbeats() + 3));
  EXPECT_EQ(driver_->Output(0, kResult).size(), 1000u);
  EXPECT_FALSE(HasOutputEnded(driver_->Messages(), 0));
  driver_->GiveBackCredit();
  ASSERT_TRUE(AwaitOutputEnded(0));
  EXPECT_EQ(driver_->Output(0, kResult), std::string(50000, '\0'));
  EndAndExpectZero();
}

TEST_F(AgentFunctionTest, InputThatIsNotWholeIsNotGivenToAnybody) {
  StartAndWelcome();
  SendInput("one");
  SpawnFunction(0, "cat");
  ASSERT_TRUE(AwaitOutputEnded(0));
  EXPECT_EQ(driver_->Output(0, kOut), "one");
  SendInput("two");
  SpawnFunction(1, "cat");
  ASSERT_TRUE(driver_->Await([](const Messages& messages) { return messages.back().has_worker_start_failed(); }));
  const v1::WorkerStartFailed failed = driver_->Messages().back().worker_start_failed();
  EXPECT_EQ(failed.error(), static_cast<uint32_t>(EIO));
  EXPECT_THAT(failed.what(), HasSubstr("went on after a worker had been started"));
  EndAndExpectZero();
}

}  // namespace
}  // namespace farandole
