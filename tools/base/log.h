#pragma once

// Lines for the operator, on stderr. Decisions do not log (pure code has none of this); shells print the reason that
// came with an action, once.
//
//   LOG(INFO) << "agent " << host << " registered";
//
// A line is "[farandole <L> <prefix>] text"; the prefix (job, host/slot or rank) is set once per process. Names of
// variables may be logged, values never. Level from FARANDOLE_LOG_LEVEL or HOROVOD_LOG_LEVEL (trace, debug, info,
// warning, error, fatal; any case); default warning. Thread-safe.

#include <sstream>
#include <string>

#include "absl/strings/string_view.h"

namespace farandole {

enum class LogLevel { kTrace, kDebug, kInfo, kWarning, kError };

// Sets level and prefix for this process. Before it is called the level is that of the environment.
void SetLogLevel(LogLevel level);
void SetLogPrefix(absl::string_view prefix);
bool LogEnabled(LogLevel level);
// From the words above; empty or unknown text gives kWarning, as the original does.
LogLevel ParseLogLevel(absl::string_view text);

namespace internal {
class LogLine {
 public:
  explicit LogLine(LogLevel level) : level_(level) {}
  ~LogLine();
  std::ostream& stream() { return text_; }

 private:
  LogLevel level_;
  std::ostringstream text_;
};
struct LogVoidify {
  void operator&(std::ostream&) const {}
};
}  // namespace internal
}  // namespace farandole

#define FDL_LOG_LEVEL_TRACE ::farandole::LogLevel::kTrace
#define FDL_LOG_LEVEL_DEBUG ::farandole::LogLevel::kDebug
#define FDL_LOG_LEVEL_INFO ::farandole::LogLevel::kInfo
#define FDL_LOG_LEVEL_WARNING ::farandole::LogLevel::kWarning
#define FDL_LOG_LEVEL_ERROR ::farandole::LogLevel::kError
#define LOG(level)                                \
  !::farandole::LogEnabled(FDL_LOG_LEVEL_##level) \
      ? (void)0                                   \
      : ::farandole::internal::LogVoidify() & ::farandole::internal::LogLine(FDL_LOG_LEVEL_##level).stream()
