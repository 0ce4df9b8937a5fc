#include <sys/stat.h>

#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/check.h"
#include "tools/base/errno_status.h"
#include "tools/base/instant.h"
#include "tools/base/log.h"
#include "tools/base/mutex.h"
#include "tools/base/prng.h"
#include "tools/base/random_bytes.h"
#include "tools/base/status_macros.h"
#include "tools/base/strong_id.h"
#include "tools/base/testing/status_matchers.h"
#include "tools/base/unique_fd.h"

namespace farandole {
namespace {

using ::farandole::testing::IsOkAndHolds;
using ::farandole::testing::StatusIs;

absl::Status Refuse() { return absl::UnavailableError("connection refused"); }
absl::StatusOr<int> Value(bool ok) {
  if (ok) return 7;
  return Refuse();
}
absl::StatusOr<int> Caller(bool ok) {
  ASSIGN_OR_RETURN(const int value, Value(ok), std::move(_) << "host " << 3);
  return value + 1;
}
absl::Status Wrapped() {
  RETURN_IF_ERROR(Refuse()) << "host "
                            << "gpu7";
  return absl::OkStatus();
}

TEST(StatusMacros, ContextStandsBeforeTheMessageFromBelowAndTheCodeStays) {
  EXPECT_THAT(Wrapped(), StatusIs(absl::StatusCode::kUnavailable, "host gpu7: connection refused"));
  EXPECT_THAT(Caller(false), StatusIs(absl::StatusCode::kUnavailable, "host 3: connection refused"));
  EXPECT_THAT(Caller(true), IsOkAndHolds(8));
}

TEST(Instant, InfinityStaysInfinity) {
  EXPECT_EQ(Instant::Infinite() - absl::Hours(1), Instant::Infinite());
  EXPECT_EQ(Instant::FromNanos(5) + absl::InfiniteDuration(), Instant::Infinite());
  EXPECT_EQ(Instant::FromNanos(7) - Instant::FromNanos(5), absl::Nanoseconds(2));
}

TEST(Prng, SameSeedSameNumbersAndBelowStaysBelow) {
  Prng a(42), b(42);
  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    const uint64_t drawn = a.Below(7);
    EXPECT_EQ(drawn, b.Below(7));
    EXPECT_LT(drawn, 7u);
    seen.insert(drawn);
  }
  EXPECT_EQ(seen.size(), 7u);
}

TEST(UniqueFd, ClosesOnceWhenItsOwnerGoes) {
  int fd = ::dup(0);
  {
    UniqueFd owner(fd);
    UniqueFd moved(std::move(owner));
    EXPECT_FALSE(owner);
  }
  struct stat ignored;
  EXPECT_EQ(::fstat(fd, &ignored), -1);
}

TEST(CondVar, AWaitEndsAtItsDeadline) {
  Mutex mutex;
  CondVar changed;
  MutexLock lock(&mutex);
  EXPECT_FALSE(changed.AwaitUntil(&mutex, Now() + absl::Milliseconds(1), [] { return false; }));
  EXPECT_TRUE(changed.AwaitUntil(&mutex, Instant::Infinite(), [] { return true; }));
}

TEST(Check, EndsTheProcessWithConditionAndState) {
  const int slots = -1;
  EXPECT_DEATH(CHECK(slots >= 0) << "slots=" << slots, "broken invariant: slots >= 0 slots=-1");
}

TEST(Log, LevelsAreTheOriginalsWords) {
  EXPECT_EQ(ParseLogLevel("DEBUG"), LogLevel::kDebug);
  EXPECT_EQ(ParseLogLevel("Fatal"), LogLevel::kError);
  EXPECT_EQ(ParseLogLevel("nonsense"), LogLevel::kWarning);
}

TEST(ErrnoStatus, SaysWhatWasTriedAndTheErrorInWords) {
  EXPECT_THAT(ErrnoStatus(ENOENT, "open /x"),
              StatusIs(absl::StatusCode::kNotFound, "open /x: No such file or directory"));
}

TEST(RandomBytes, DifferAndIdsAreNeverZero) {
  EXPECT_NE(RandomBytes(32), RandomBytes(32));
  EXPECT_NE(RandomId(), 0u);
}

TEST(StrongId, OrdersAndCompares) {
  using Rank = StrongId<struct RankTag, int>;
  EXPECT_LT(Rank(1), Rank(2));
  EXPECT_EQ(Rank(3).value(), 3);
}

}  // namespace
}  // namespace farandole
