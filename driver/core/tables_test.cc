#include "absl/time/time.h"
#include "driver/core/agent_table.h"
#include "driver/core/driver_view.h"
#include "driver/core/ids.h"
#include "driver/core/worker_table.h"
#include "gtest/gtest.h"
#include "tools/base/ids.h"
#include "tools/base/instant.h"

namespace farandole {
namespace {

constexpr Instant kStart = Instant::FromNanos(1'000'000'000);

WorkerTable TwoWorkers() {
  WorkerTable table;
  for (int slot = 0; slot < 2; ++slot) {
    WorkerRecord worker;
    worker.id = {{"a", slot}, Incarnation(slot + 1)};
    worker.placement.rank = slot;
    worker.spawned = true;
    table.Add(worker);
  }
  return table;
}

TEST(WorkerTable, WhatIsSaidOfAnotherIncarnationOrAGoneWorkerFindsNobody) {
  WorkerTable table = TwoWorkers();
  EXPECT_NE(table.FindLive({{"a", 0}, Incarnation(1)}), nullptr);
  EXPECT_EQ(table.FindLive({{"a", 0}, Incarnation(2)}), nullptr);
  EXPECT_EQ(table.FindLive({{"b", 0}, Incarnation(1)}), nullptr);
  table.Move(&table.all()[0], WorkerState::kGone);
  EXPECT_EQ(table.FindLive({{"a", 0}, Incarnation(1)}), nullptr);
}

TEST(WorkerTable, WhoWasNotStartedCannotBeSpokenOf) {
  WorkerTable table = TwoWorkers();
  table.all()[0].spawned = false;
  EXPECT_EQ(table.FindLive({{"a", 0}, Incarnation(1)}), nullptr);
}

TEST(WorkerTable, ALifeWithAReturn) {
  WorkerTable table = TwoWorkers();
  WorkerRecord* worker = &table.all()[1];
  for (WorkerState to : {WorkerState::kReady, WorkerState::kRunning, WorkerState::kLeaving, WorkerState::kReady,
                         WorkerState::kRunning, WorkerState::kGone}) {
    table.Move(worker, to);
    EXPECT_EQ(worker->state, to);
  }
}

TEST(WorkerTableDeathTest, NobodyComesBackFromGone) {
  WorkerTable table = TwoWorkers();
  table.Move(&table.all()[0], WorkerState::kGone);
  EXPECT_DEATH(table.Move(&table.all()[0], WorkerState::kReady), "worker a/0: gone -> ready");
}

TEST(WorkerTableDeathTest, NobodyRunsWithoutHavingJoined) {
  WorkerTable table = TwoWorkers();
  EXPECT_DEATH(table.Move(&table.all()[0], WorkerState::kRunning), "worker a/0: starting -> running");
}

TEST(WorkerTable, TheLongestWaitCountsAndEndsWithIt) {
  WorkerTable table = TwoWorkers();
  EXPECT_TRUE(table.WaitingSince().is_infinite());
  for (int i : {0, 1}) {
    table.Move(&table.all()[i], WorkerState::kReady);
    table.all()[i].waits_since = kStart + absl::Seconds(i);
  }
  EXPECT_EQ(table.WaitingSince(), kStart);
  table.ShiftDeadlines(absl::Seconds(10));
  EXPECT_EQ(table.WaitingSince(), kStart + absl::Seconds(10));
  table.Move(&table.all()[0], WorkerState::kGone);
  EXPECT_EQ(table.WaitingSince(), kStart + absl::Seconds(11));
  EXPECT_EQ(table.Ranks([](const WorkerRecord& worker) { return worker.live(); }), std::vector<int>{1});
}

TEST(AgentTable, WhatIsSaidOfAnotherIncarnationOrAGoneAgentFindsNobody) {
  AgentTable table;
  AgentRecord agent;
  agent.host = "a";
  agent.incarnation = Incarnation(5);
  agent.deadline = kStart;
  table.Add(agent);
  EXPECT_EQ(table.FindLive("a", Incarnation(6)), nullptr);
  EXPECT_EQ(table.FindLive("b", Incarnation(5)), nullptr);
  ASSERT_NE(table.FindLive("a", Incarnation(5)), nullptr);
  EXPECT_EQ(table.NextDeadline(), kStart);
  table.Move(table.FindHost("a"), AgentState::kGone);
  EXPECT_EQ(table.FindLive("a", Incarnation(5)), nullptr);
  EXPECT_TRUE(table.NextDeadline().is_infinite());
  EXPECT_DEATH(table.Move(table.FindHost("a"), AgentState::kReady), "agent of host a: gone -> ready");
}

}  // namespace
}  // namespace farandole
