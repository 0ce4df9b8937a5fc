#pragma once

// RETURN_IF_ERROR and ASSIGN_OR_RETURN, with the grammar of today's Abseil: context is streamed on and is put before
// the message that came from below, so that a person reads from the outside in.
//
//   RETURN_IF_ERROR(Connect(address)) << "host " << host;
//   ASSIGN_OR_RETURN(UniqueFd fd, Open(path), std::move(_) << "job " << id);
//
// The distribution's Abseil (June 2022) has none; leaving these later is a change of the include.

#include <sstream>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace farandole {

// Collects context for an error that is about to be returned.
class StatusBuilder {
 public:
  explicit StatusBuilder(absl::Status status) : status_(std::move(status)) {}

  template <typename T>
  StatusBuilder&& operator<<(const T& value) && {
    context_ << value;
    return std::move(*this);
  }

  operator absl::Status() && { return std::move(*this).Build(); }

  template <typename T>
  operator absl::StatusOr<T>() && {
    return std::move(*this).Build();
  }

 private:
  absl::Status Build() && {
    const std::string context = std::move(context_).str();
    if (context.empty()) return std::move(status_);
    return absl::Status(status_.code(), absl::StrCat(context, ": ", status_.message()));
  }

  absl::Status status_;
  std::ostringstream context_;
};

}  // namespace farandole

#define FDL_CONCAT_INNER(a, b) a##b
#define FDL_CONCAT(a, b) FDL_CONCAT_INNER(a, b)

#define RETURN_IF_ERROR(expr)                              \
  if (absl::Status fdl_status = (expr); fdl_status.ok()) { \
  } else                                                   \
    return ::farandole::StatusBuilder(std::move(fdl_status))

#define FDL_ASSIGN_OR_RETURN_3(lhs, expr, error) \
  FDL_ASSIGN_OR_RETURN_IMPL(FDL_CONCAT(fdl_value_, __LINE__), lhs, expr, error)
// Not std::move(_): alone in a return statement g++ calls the move redundant, and clang needs it.
#define FDL_ASSIGN_OR_RETURN_2(lhs, expr) \
  FDL_ASSIGN_OR_RETURN_3(lhs, expr, static_cast<::farandole::StatusBuilder&&>(_))
#define FDL_ASSIGN_OR_RETURN_IMPL(value, lhs, expr, error)                    \
  auto value = (expr);                                                        \
  if (!value.ok()) {                                                          \
    [[maybe_unused]] ::farandole::StatusBuilder _(std::move(value).status()); \
    return error;                                                             \
  }                                                                           \
  lhs = *std::move(value)

#define FDL_PICK(_1, _2, _3, NAME, ...) NAME
// The third argument, if given, is an expression in which `_` is the StatusBuilder: std::move(_) << "context".
#define ASSIGN_OR_RETURN(...) FDL_PICK(__VA_ARGS__, FDL_ASSIGN_OR_RETURN_3, FDL_ASSIGN_OR_RETURN_2)(__VA_ARGS__)
