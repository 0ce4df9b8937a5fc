#pragma once

// Matchers and assertions for absl::Status and absl::StatusOr in tests.

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_macros.h"

namespace farandole::testing {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& value) {
  return value.status();
}

MATCHER(IsOk, negation ? "is an error" : "is OK") {
  *result_listener << StatusOf(arg);
  return StatusOf(arg).ok();
}

MATCHER_P2(StatusIs, code, message_matcher,
           std::string("has code ") + absl::StatusCodeToString(code) + " and a message that " +
               ::testing::DescribeMatcher<std::string>(message_matcher)) {
  const absl::Status& status = StatusOf(arg);
  *result_listener << status;
  return status.code() == code &&
         ::testing::ExplainMatchResult(message_matcher, std::string(status.message()), result_listener);
}

inline auto StatusIs(absl::StatusCode code) { return StatusIs(code, ::testing::_); }

MATCHER_P(IsOkAndHolds, value_matcher, "is OK and holds a value that matches") {
  if (!arg.ok()) {
    *result_listener << arg.status();
    return false;
  }
  return ::testing::ExplainMatchResult(value_matcher, *arg, result_listener);
}

}  // namespace farandole::testing

#define EXPECT_OK(expr) EXPECT_THAT(expr, ::farandole::testing::IsOk())
#define ASSERT_OK(expr) ASSERT_THAT(expr, ::farandole::testing::IsOk())
#define ASSERT_OK_AND_ASSIGN(lhs, expr) FDL_ASSERT_OK_AND_ASSIGN_IMPL(FDL_CONCAT(fdl_value_, __LINE__), lhs, expr)
#define FDL_ASSERT_OK_AND_ASSIGN_IMPL(value, lhs, expr) \
  auto value = (expr);                                  \
  ASSERT_OK(value);                                     \
  lhs = *std::move(value)
