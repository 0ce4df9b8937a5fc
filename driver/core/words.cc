#include "driver/core/words.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace farandole {

std::string RanksInWords(const std::vector<int>& ranks) {
  std::vector<std::string> parts;
  for (size_t first = 0; first < ranks.size();) {
    size_t end = first + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (end - first >= 3) {
      parts.push_back(absl::StrCat(ranks[first], "-", ranks[end - 1]));
    } else {
      for (size_t i = first; i < end; ++i) parts.push_back(absl::StrCat(ranks[i]));
    }
    first = end;
  }
  return absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ", absl::StrJoin(parts, ", "));
}

std::string SignalInWords(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? absl::StrCat("SIG", name) : absl::StrCat("signal ", signal);
}

std::string EndInWords(const ExitStatus& status) {
  if (status.signal == 0) return absl::StrCat("ended with exit code ", status.code);
  return absl::StrCat("was ended by signal ", status.signal, " (", SignalInWords(status.signal), ")");
}

std::string ErrorInWords(int error) {
  const char* words = ::strerrordesc_np(error);
  return words != nullptr ? words : absl::StrCat("error ", error);
}

}  // namespace farandole
