#include "worker/runtime/handle_table.h"

#include <set>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/clock.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::IsOkAndHolds;
using ::farandole::testing::StatusIs;
using ::testing::ElementsAre;

constexpr absl::Duration kLong = absl::Seconds(60);

TEST(HandleTable, FinishedOperationTellsItsStatusAndResult) {
  HandleTable table;
  const Handle handle = table.Add(nullptr);
  EXPECT_NE(handle, 0u);
  EXPECT_THAT(table.Poll(handle), IsOkAndHolds(false));
  EXPECT_THAT(table.ResultOf(handle), StatusIs(absl::StatusCode::kFailedPrecondition));
  Result result;
  result.rows = {2, 3};
  table.Finish(handle, absl::OkStatus(), std::move(result));
  EXPECT_THAT(table.Poll(handle), IsOkAndHolds(true));
  EXPECT_OK(table.Wait(handle, Now()));
  ASSERT_OK_AND_ASSIGN(const Result* given, table.ResultOf(handle));
  EXPECT_THAT(given->rows, ElementsAre(2, 3));
}

TEST(HandleTable, FailedOperationTellsWhyEachTimeItIsAsked) {
  HandleTable table;
  const Handle handle = table.Add(nullptr);
  table.Finish(handle, absl::UnavailableError("rank 1 was lost"), {});
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(table.Wait(handle, Now() + kLong), StatusIs(absl::StatusCode::kUnavailable, "rank 1 was lost"));
  }
  EXPECT_THAT(table.ResultOf(handle), StatusIs(absl::StatusCode::kUnavailable));
}

TEST(HandleTable, AWaitThatGivesUpCanBeRepeated) {
  HandleTable table;
  const Handle handle = table.Add(nullptr);
  EXPECT_THAT(table.Wait(handle, Now()), StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_THAT(table.Wait(handle, Now() + absl::Milliseconds(2)), StatusIs(absl::StatusCode::kDeadlineExceeded));
  table.Finish(handle, absl::OkStatus(), {});
  EXPECT_OK(table.Wait(handle, Now() + kLong));
}

TEST(HandleTable, UnknownAndReleasedHandlesAreNotFound) {
  HandleTable table;
  const Handle released = table.Add(nullptr);
  table.Finish(released, absl::OkStatus(), {});
  EXPECT_OK(table.Release(released));
  for (const Handle handle : {Handle{0}, released, Handle{12345}}) {
    EXPECT_THAT(table.Poll(handle), StatusIs(absl::StatusCode::kNotFound));
    EXPECT_THAT(table.Wait(handle, Now()), StatusIs(absl::StatusCode::kNotFound));
    EXPECT_THAT(table.ResultOf(handle), StatusIs(absl::StatusCode::kNotFound));
    EXPECT_THAT(table.Release(handle), StatusIs(absl::StatusCode::kNotFound));
  }
}

TEST(HandleTable, ReleasedUnfinishedOperationFinishesUnseen) {
  HandleTable table;
  const Handle handle = table.Add(nullptr);
  EXPECT_OK(table.Release(handle));
  EXPECT_THAT(table.Poll(handle), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(table.size(), 1);
  table.Finish(handle, absl::OkStatus(), {});
  EXPECT_EQ(table.size(), 0);
}

TEST(HandleTable, ManyThreadsAddWaitAndRelease) {
  constexpr int kThreads = 8;
  constexpr int kEach = 400;
  HandleTable table;
  Mutex mutex;
  std::set<Handle> seen;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) {
        const Handle handle = table.Add(nullptr);
        std::thread finisher;
        if (i % 50 == 0) {
          finisher = std::thread([&, handle] { table.Finish(handle, absl::OkStatus(), {}); });
        } else {
          table.Finish(handle, absl::OkStatus(), {});
        }
        EXPECT_OK(table.Wait(handle, Now() + kLong));
        if (finisher.joinable()) finisher.join();
        EXPECT_OK(table.Release(handle));
        MutexLock lock(&mutex);
        seen.insert(handle);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(seen.size(), size_t{kThreads * kEach});  // none was used twice
  EXPECT_EQ(seen.count(0), 0u);
  EXPECT_EQ(table.size(), 0);
}

}  // namespace
}  // namespace farandole
