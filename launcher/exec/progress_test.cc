#include "launcher/exec/progress.h"

#include "driver/core/driver_view.h"
#include "driver/core/host_step.h"
#include "gtest/gtest.h"
#include "tools/base/ids.h"

namespace farandole {
namespace {

DriverView View() {
  DriverView view;
  view.agents.resize(2);
  view.agents[0] = {"a", Incarnation(1), AgentState::kReady, HostStep::kWorkers, ""};
  view.agents[1] = {"b", Incarnation(2), AgentState::kReady, HostStep::kWorkers, ""};
  view.workers.resize(4);
  view.workers[0].process_started = true;
  return view;
}

TEST(Progress, CountsWhatIsThere) { EXPECT_EQ(ProgressText(View()), "hosts 2/2  agents 2/2  workers 1/4"); }

TEST(Progress, SaysWhichHostIsMissingAndPrefersOneWithAReason) {
  DriverView view = View();
  view.agents[0] = {"a", Incarnation(1), AgentState::kStarting, HostStep::kCallBack, ""};
  EXPECT_EQ(ProgressText(view), "hosts 2/2  agents 1/2  workers 1/4  (a: call back)");
  view.agents[1] = {"b", Incarnation(2), AgentState::kStarting, HostStep::kConnect, "refused"};
  EXPECT_EQ(ProgressText(view), "hosts 1/2  agents 0/2  workers 1/4  (b: connect: refused)");
}

TEST(Progress, IsOverWhenEveryWorkerWasStarted) {
  DriverView view = View();
  EXPECT_FALSE(IsStarted(view));
  for (int i : {1, 2}) view.workers[i].process_started = true;
  EXPECT_FALSE(IsStarted(view));
  view.workers[3].state = WorkerState::kGone;  // a short one
  EXPECT_TRUE(IsStarted(view));
  EXPECT_EQ(ProgressText(view), "hosts 2/2  agents 2/2  workers 4/4");
}

TEST(Progress, IsOverWhenTheJobIsEnding) {
  DriverView view = View();
  view.phase = JobPhase::kEnding;
  EXPECT_TRUE(IsStarted(view));
}

}  // namespace
}  // namespace farandole
