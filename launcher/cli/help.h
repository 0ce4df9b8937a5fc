#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace farandole {

// "usage: horovodrun -np N ..." for the command as a person calls it ("horovodrun", "farandole run").
std::string UsageLine(absl::string_view command);

// Every option with a line, and examples. The flag library only lays it out: what it does not know (long words with one
// dash, whose they are) is done in normalise.h and settings.h.
std::string RunHelp(const std::string& command);

// The usage line of `farandole` itself, and what it can do.
std::string FarandoleUsageLine();
std::string FarandoleHelp();

// The version that `command` says it has: the original's name has that of the original that it follows, and ours as a
// local part, as Python's versions do.
std::string VersionOf(absl::string_view command);

}  // namespace farandole
