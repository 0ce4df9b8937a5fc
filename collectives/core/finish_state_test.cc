#include "collectives/core/finish_state.h"

#include "gtest/gtest.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::StatusIs;
using ::testing::HasSubstr;

TEST(FinishState, TheFirstReasonStays) {
  FinishState state;
  EXPECT_OK(state.CheckStart());
  EXPECT_FALSE(state.finished());
  EXPECT_THAT(state.Finish(absl::UnavailableError("rank 1 on host a: gone")), StatusIs(absl::StatusCode::kUnavailable));
  state.Abort("generation 2");
  EXPECT_TRUE(state.finished());
  EXPECT_THAT(state.reason(), StatusIs(absl::StatusCode::kUnavailable, "rank 1 on host a: gone"));
  EXPECT_THAT(state.CheckStart(), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("rank 1 on host a: gone")));
}

TEST(FinishState, AnAbortIsReportedToEveryLaterCall) {
  FinishState state;
  state.Abort("generation 2");
  state.Abort("generation 3");
  EXPECT_THAT(state.CheckStart(), StatusIs(absl::StatusCode::kCancelled, "generation 2"));
  EXPECT_THAT(state.CheckStart(), StatusIs(absl::StatusCode::kCancelled, "generation 2"));
}

}  // namespace
}  // namespace farandole
