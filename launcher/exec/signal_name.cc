#include "launcher/exec/signal_name.h"

#include <cstring>

#include "absl/strings/str_cat.h"

namespace farandole {

std::string SignalName(int signal) {
  const char* const name = ::sigabbrev_np(signal);
  return name != nullptr ? absl::StrCat("SIG", name) : absl::StrCat("signal ", signal);
}

}  // namespace farandole
