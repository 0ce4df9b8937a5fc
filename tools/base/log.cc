#include "tools/base/log.h"

#include <cstdlib>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

namespace farandole {
namespace {

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kTrace:
      return spdlog::level::trace;
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::warn;
}

LogLevel LevelOfEnvironment() {
  for (const char* name : {"FARANDOLE_LOG_LEVEL", "HOROVOD_LOG_LEVEL"}) {
    if (const char* text = std::getenv(name)) return ParseLogLevel(text);
  }
  return LogLevel::kWarning;
}

// Never destroyed: threads of the library may log until the process is gone.
spdlog::logger& Logger() {
  static spdlog::logger* const logger = [] {
    auto* made = new spdlog::logger("farandole", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("[farandole %L] %v");
    made->set_level(ToSpdlog(LevelOfEnvironment()));
    made->flush_on(spdlog::level::trace);
    return made;
  }();
  return *logger;
}

}  // namespace

LogLevel ParseLogLevel(absl::string_view text) {
  const std::string word = absl::AsciiStrToLower(text);
  if (word == "trace") return LogLevel::kTrace;
  if (word == "debug") return LogLevel::kDebug;
  if (word == "info") return LogLevel::kInfo;
  if (word == "error" || word == "fatal") return LogLevel::kError;
  return LogLevel::kWarning;
}

void SetLogLevel(LogLevel level) { Logger().set_level(ToSpdlog(level)); }

void SetLogPrefix(absl::string_view prefix) {
  Logger().set_pattern(prefix.empty() ? "[farandole %L] %v" : absl::StrCat("[farandole %L ", prefix, "] %v"));
}

bool LogEnabled(LogLevel level) { return Logger().should_log(ToSpdlog(level)); }

namespace internal {
LogLine::~LogLine() { Logger().log(ToSpdlog(level_), text_.str()); }
}  // namespace internal

}  // namespace farandole
