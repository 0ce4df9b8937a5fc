#include "launcher/exec/watching.h"

#include <fcntl.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/testing/status_matchers.h"
#include "tools/base/unique_fd.h"

namespace farandole {
namespace {

using ::testing::MatchesRegex;

class WatchingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    read_.reset(ends[0]);
    write_.reset(ends[1]);
    OutputMuxOptions options;
    options.stdout_fd = options.stderr_fd = write_.get();
    ASSERT_OK_AND_ASSIGN(mux_, OutputMux::Create(options));
    view_.agents.resize(1);
    view_.agents[0].host = "b";
    view_.agents[0].incarnation = Incarnation(1);
  }

  void Reach(Watching& watching, HostStep step, const std::string& note = "") {
    view_.agents[0].step = step;
    view_.agents[0].note = note;
    watching.OnView(view_);
  }

  std::string Shown() {
    mux_ = nullptr;
    write_.reset();
    std::string text;
    char buffer[4096];
    for (ssize_t size; (size = ::read(read_.get(), buffer, sizeof buffer)) > 0;) text.append(buffer, size);
    return text;
  }

  UniqueFd read_, write_;
  std::unique_ptr<OutputMux> mux_;
  DriverView view_;
};

TEST_F(WatchingTest, VerboseHasALineForEachStepAndReasonAndNoneTwice) {
  Watching watching(mux_.get(), /*verbose=*/true, /*progress=*/false);
  Reach(watching, HostStep::kResolve);
  Reach(watching, HostStep::kConnect, "refused (attempt 1)");
  Reach(watching, HostStep::kConnect, "refused (attempt 1)");
  Reach(watching, HostStep::kConnect, "refused (attempt 2)");
  EXPECT_THAT(Shown(), MatchesRegex("farandole: host b: resolve .[0-9.]+ s.\n"
                                    "farandole: host b: connect: refused .attempt 1. .[0-9.]+ s.\n"
                                    "farandole: host b: connect: refused .attempt 2. .[0-9.]+ s.\n"));
}

TEST_F(WatchingTest, OtherwiseThereIsNothingButTheProgressLineUntilItIsOver) {
  Watching quiet(mux_.get(), false, false);
  Reach(quiet, HostStep::kConnect, "refused");
  Watching watching(mux_.get(), false, true);
  Reach(watching, HostStep::kResolve);
  EXPECT_FALSE(watching.ended_at().has_value());
  view_.phase = JobPhase::kEnding;
  watching.OnView(view_);
  EXPECT_TRUE(watching.ended_at().has_value());
  EXPECT_EQ(Shown(), "hosts 0/1  agents 0/1  workers 0/0  (b: resolve)\r\x1b[K");
}

TEST_F(WatchingTest, EachListenerIsNamedOnce) {
  Watching watching(mux_.get(), true, false);
  Reach(watching, HostStep::kWorkers);
  view_.workers.resize(1);
  view_.workers[0].id = {{"b", 0}, Incarnation(2)};
  view_.workers[0].endpoint = "10.0.0.1:7";
  watching.OnView(view_);
  watching.OnView(view_);
  EXPECT_THAT(Shown(), MatchesRegex("farandole: host b: workers .[0-9.]+ s.\n"
                                    "farandole: rank 0 listens on 10.0.0.1:7\n"));
}

}  // namespace
}  // namespace farandole
