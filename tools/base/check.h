#pragma once

// CHECK(condition) << state: ends the process with the condition, the place and the streamed state when a bug has
// broken an invariant. On in all builds. Never for what a user, a peer or the machine can cause: those are
// absl::Status.

#include <cstdlib>
#include <iostream>
#include <sstream>

#include "absl/status/status.h"

namespace farandole::internal {

class CheckFailure {
 public:
  CheckFailure(const char* condition, const char* file, int line) {
    message_ << file << ":" << line << ": broken invariant: " << condition << " ";
  }
  [[noreturn]] ~CheckFailure() {
    message_ << "\n";
    std::cerr << message_.str() << std::flush;
    std::abort();
  }
  std::ostream& stream() { return message_; }

 private:
  std::ostringstream message_;
};

// Gives both branches of the CHECK expression type void.
struct Voidify {
  void operator&(std::ostream&) const {}
};

}  // namespace farandole::internal

#define CHECK(condition)                           \
  (condition) ? (void)0                            \
              : ::farandole::internal::Voidify() & \
                    ::farandole::internal::CheckFailure(#condition, __FILE__, __LINE__).stream()
#define CHECK_OK(expr)                                                \
  if (absl::Status fdl_check_status = (expr); !fdl_check_status.ok()) \
  ::farandole::internal::CheckFailure(#expr, __FILE__, __LINE__).stream() << fdl_check_status
