#include "launcher/cli/command_line.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "launcher/cli/help.h"
#include "launcher/cli/normalise.h"
#include "launcher/cli/options.h"
#include "launcher/cli/quote.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

constexpr char kHorovodrun[] = "horovodrun";
constexpr char kFarandoleRun[] = "farandole run";

absl::string_view BaseName(absl::string_view path) { return path.substr(path.rfind('/') + 1); }

bool Has(const NormalisedWords& words, absl::string_view option) {
  for (const NormalisedWords::Given& given : words.options) {
    if (given.option->Canonical() == option) return true;
  }
  return false;
}

absl::StatusOr<CommandLine> ParseRun(absl::Span<const std::string> arguments, const CommandLineInputs& inputs,
                                     const std::string& command) {
  ASSIGN_OR_RETURN(NormalisedWords words, Normalise(arguments));
  if (Has(words, "--help")) return CommandLine(PrintText{RunHelp(command)});
  if (Has(words, "--version")) return CommandLine(PrintText{VersionOf(command) + "\n"});
  if (Has(words, "--check-build")) return CommandLine(CheckBuildRequest{Has(words, "--verbose")});
  ASSIGN_OR_RETURN(LaunchRequest request, BuildRequest(std::move(words), inputs, command));
  return CommandLine(std::move(request));
}

UsageError MakeError(absl::string_view command, const absl::Status& status, absl::string_view usage) {
  return UsageError{absl::StrCat(command, ": ", status.message(), "\n", usage)};
}

CommandLine ParseRunOrError(absl::Span<const std::string> arguments, const CommandLineInputs& inputs,
                            const std::string& command) {
  absl::StatusOr<CommandLine> parsed = ParseRun(arguments, inputs, command);
  if (parsed.ok()) return *std::move(parsed);
  return MakeError(command, parsed.status(), UsageLine(command));
}

CommandLine ParseFarandole(absl::Span<const std::string> arguments, const CommandLineInputs& inputs) {
  constexpr absl::string_view kWords[] = {"run", "bench", "--help", "--version"};
  const auto error = [](const std::string& what) {
    return MakeError("farandole", absl::InvalidArgumentError(what), FarandoleUsageLine());
  };
  if (arguments.empty()) return error("what should be done? \"farandole run\" starts a job, --help says more");
  const std::string& word = arguments[0];
  if (word == "run") return ParseRunOrError(arguments.subspan(1), inputs, kFarandoleRun);
  if (word == "bench") return BenchCommand();
  if (word == "-v" || word == "--version") return PrintText{VersionOf("farandole") + "\n"};
  if (word == "-h" || word == "--help") return PrintText{FarandoleHelp()};
  const std::string nearest = NearestWord(word, kWords);
  return error(absl::StrCat("there is no command ", Quote(word),
                            nearest.empty() ? "" : absl::StrCat("; did you mean ", nearest, "?")));
}

}  // namespace

CommandLine ParseCommandLine(const CommandLineInputs& inputs) {
  absl::Span<const std::string> arguments(inputs.arguments);
  const bool original = !arguments.empty() && BaseName(arguments[0]) == kHorovodrun;
  if (!arguments.empty()) arguments.remove_prefix(1);
  return original ? ParseRunOrError(arguments, inputs, kHorovodrun) : ParseFarandole(arguments, inputs);
}

}  // namespace farandole
