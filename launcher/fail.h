#pragma once

#include <cstdio>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace farandole {

// The exit code for what is about us or the machine, and not about a program.
inline constexpr int kFailed = 1;

// Tells the person why nothing was started, and returns `exit_code`.
inline int Fail(int exit_code, absl::string_view called_as, const absl::Status& status) {
  const std::string text = absl::StrCat(called_as, ": ", status.message(), "\n");
  std::fputs(text.c_str(), stderr);
  return exit_code;
}

}  // namespace farandole
