#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "launcher/cli/hosts.h"

namespace farandole {

// What is wrong with a piece of text, and where in it.
struct HostProblem {
  size_t offset = 0;
  std::string what;
};

// Where an item stands, for its hints.
enum class HostPlace { kList, kLine };

// [USER@]HOST[:N], without blanks: the first word of an item (see hosts.h). Fills `*line` as far as it comes.
absl::optional<HostProblem> ParseHostWord(absl::string_view word, HostLine* line);

// A whole item, without blanks around it.
absl::optional<HostProblem> ParseHostItem(absl::string_view item, HostPlace place, HostLine* line);

}  // namespace farandole
