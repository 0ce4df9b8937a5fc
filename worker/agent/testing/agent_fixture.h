#pragma once

#include <signal.h>
#include <sys/prctl.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "proto/v1/agent_service.pb.h"
#include "proto/v1/bootstrap.pb.h"
#include "worker/agent/testing/agent_process.h"
#include "worker/agent/testing/fake_driver.h"

namespace farandole::testing {

inline constexpr v1::Output::Stream kOut = v1::Output::STDOUT;
inline constexpr v1::Output::Stream kErr = v1::Output::STDERR;
inline constexpr uint64_t kWorkers = 100;  // the worker in slot n has incarnation kWorkers + n

using Messages = std::vector<v1::AgentMessage>;

inline const v1::WorkerExited* FindExit(const Messages& messages, uint32_t slot) {
  for (const v1::AgentMessage& message : messages) {
    if (message.has_worker_exited() && message.worker_exited().worker().slot() == slot) return &message.worker_exited();
  }
  return nullptr;
}

inline bool HasOutputEnded(const Messages& messages, uint32_t slot) {
  return std::any_of(messages.begin(), messages.end(), [slot](const v1::AgentMessage& message) {
    return message.has_output_ended() && message.output_ended().worker().slot() == slot;
  });
}

inline void Fill(uint32_t slot, v1::WorkerId* worker) {
  worker->set_host("a");
  worker->set_slot(slot);
  worker->set_incarnation(kWorkers + slot);
}

inline void FillAlone(v1::Placement* place) {
  place->set_size(1);
  place->set_local_size(1);
  place->set_cross_size(1);
}

// A worker that ignores TERM, with a helper in its group and a daemon in another session that ignore it too; their
// numbers.
inline constexpr char kStubborn[] =
    "trap '' TERM HUP INT; echo $$; sleep 1000 & echo $!; setsid sh -c 'echo $$; exec sleep 1000' & wait; sleep 1000";

// The real agent program, with the test as its starter, its driver and its workers' libraries.
class AgentTest : public ::testing::Test {
 protected:
  // Orphans of a killed agent come here, as they come to a launcher, so that none survives the test.
  static void SetUpTestSuite() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

  // Starts the agent and waits for its first message.
  void StartAgent() {
    agent_ = std::make_unique<AgentProcess>(Bootstrap().SerializeAsString(), option_);
    ASSERT_TRUE(driver_->Await([](const Messages& messages) { return !messages.empty(); })) << agent_->Said();
  }

  v1::AgentBootstrap Bootstrap() {
    v1::AgentBootstrap bootstrap;
    bootstrap.set_job("job");
    bootstrap.set_host("a");
    bootstrap.set_incarnation(77);
    bootstrap.set_driver_address(driver_->address());
    bootstrap.set_job_key(std::string(32, 'k'));
    bootstrap.set_data_address("127.0.0.1");
    bootstrap.mutable_grace()->set_seconds(grace_ms_ / 1000);
    bootstrap.mutable_grace()->set_nanos(grace_ms_ % 1000 * 1'000'000);
    return bootstrap;
  }

  // The agent itself: with --guard, not the process that was started.
  pid_t AgentPid() { return static_cast<pid_t>(driver_->Messages().at(0).register_().pid()); }

  void Welcome(uint64_t credit) {
    v1::DriverMessage message;
    message.mutable_welcome()->set_protocol(1);
    message.mutable_welcome()->mutable_heartbeat_interval()->set_nanos(20'000'000);
    message.mutable_welcome()->set_output_credit(credit);
    driver_->Send(message);
  }

  void StartAndWelcome(uint64_t credit = 1 << 20) {
    StartAgent();
    Welcome(credit);
  }

  void Spawn(uint32_t slot, std::vector<std::string> arguments, const std::vector<std::string>& environment,
             const std::string& folder) {
    v1::DriverMessage message;
    v1::Spawn* spawn = message.mutable_spawn();
    Fill(slot, spawn->mutable_worker());
    FillAlone(spawn->mutable_placement());
    for (std::string& argument : arguments) spawn->add_arguments(std::move(argument));
    for (const std::string& variable : environment) spawn->add_environment(variable);
    spawn->set_working_directory(folder);
    driver_->Send(message);
  }

  void SpawnShell(uint32_t slot, const std::string& script) {
    Spawn(slot, {"sh", "-c", script}, {"PATH=/usr/bin:/bin"}, "/");
  }

  void Signal(uint32_t slot, int signal) {
    v1::DriverMessage message;
    Fill(slot, message.mutable_signal()->mutable_worker());
    message.mutable_signal()->set_signal(signal);
    driver_->Send(message);
  }

  void Grant(uint64_t bytes) {
    v1::DriverMessage message;
    message.mutable_output_credit()->set_bytes(bytes);
    driver_->Send(message);
  }

  void SendEnd() {
    v1::DriverMessage message;
    message.mutable_end()->set_reason("the test is over");
    driver_->Send(message);
  }

  void EndAndExpectZero() {
    SendEnd();
    EXPECT_TRUE(driver_->AwaitStreamEnd());
    EXPECT_EQ(agent_->Wait(), 0);
  }

  bool AwaitExit(uint32_t slot) {
    return driver_->Await([&](const Messages& messages) { return FindExit(messages, slot) != nullptr; });
  }
  bool AwaitOutputEnded(uint32_t slot) {
    return driver_->Await([&](const Messages& messages) { return HasOutputEnded(messages, slot); });
  }
  v1::ExitStatus Status(uint32_t slot) {
    const Messages messages = driver_->Messages();
    const v1::WorkerExited* exit = FindExit(messages, slot);
    return exit == nullptr ? v1::ExitStatus() : exit->status();
  }

  // The first `count` lines of the worker's standard output, once they are there.
  std::vector<std::string> AwaitLines(uint32_t slot, size_t count) {
    std::vector<std::string> lines;
    EXPECT_TRUE(driver_->Await([&](const Messages& messages) {
      std::string text;
      for (const v1::AgentMessage& message : messages) {
        if (message.has_output() && message.output().worker().slot() == slot) text += message.output().data();
      }
      lines = absl::StrSplit(text, '\n');
      return lines.size() > count;
    }));
    lines.resize(count);
    return lines;
  }
  std::vector<pid_t> AwaitPids(uint32_t slot, size_t count) {
    std::vector<pid_t> pids;
    for (const std::string& line : AwaitLines(slot, count)) {
      int pid = 0;
      EXPECT_TRUE(absl::SimpleAtoi(line, &pid)) << line;
      pids.push_back(pid);
    }
    return pids;
  }

  int grace_ms_ = 200;
  const char* option_ = nullptr;
  std::unique_ptr<FakeDriver> driver_ = FakeDriver::Start();
  std::unique_ptr<AgentProcess> agent_;
};

}  // namespace farandole::testing
