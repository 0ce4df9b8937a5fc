#include "launcher/cli/command_line.h"

#include <map>
#include <memory>
#include <utility>

#include "CLI/App.hpp"
#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "launcher/cli/env_names.h"
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

// Shows an option by the words that people use, of which the flag library knows only the canonical one.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_name(const CLI::Option* option, bool) const override {
    for (const OptionSpec& spec : AllOptions()) {
      if (absl::StripPrefix(spec.Canonical(), "--") == absl::string_view(option->get_lnames()[0])) {
        return absl::StrReplaceAll(spec.words, {{" ", ","}});
      }
    }
    return CLI::Formatter::make_option_name(option, false);
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_type_name().empty() ? "" : " " + option->get_type_name();
  }
  std::string make_usage(const CLI::App*, std::string name) const override { return UsageLine(name); }
};

constexpr char kExamples[] = R"(Examples:
  # four processes on this machine
  COMMAND -np 4 python train.py

  # the same, saying where
  COMMAND -np 4 -H localhost:4 python train.py

  # hosts from a file, output also in runs/1/rank.0/stdout and so on
  COMMAND -np 4 --hostfile hosts.txt --output-filename runs/1 python train.py --epochs 3

Everything from the program on belongs to it. The job ends with the exit code of the
process that failed first, 128 + signal if one was killed, 127 if the program could not
be executed, 2 if nothing was started, 130 after Ctrl-C.)";

// The flag library over the options that are there: their last values and the help.
class Flags {
 public:
  explicit Flags(const std::string& command) : app_("Starts PROGRAM in N processes that train together.", command) {
    app_.formatter(std::make_shared<HelpFormatter>());
    app_.get_formatter()->column_width(52);
    app_.set_help_flag();
    app_.footer(absl::StrReplaceAll(kExamples, {{"COMMAND", command}}));
    for (const OptionSpec& spec : AllOptions()) {
      if (!spec.available()) continue;
      const std::string name(spec.Canonical()), help(spec.help);
      if (spec.values == 0) {
        app_.add_flag(name, help);
      } else {
        app_.add_option(name, values_[name], help)
            ->type_name(std::string(spec.value_name))
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
      }
    }
  }

  absl::Status Parse(std::vector<std::string> words) {
    std::vector<std::string> reversed(words.rbegin(), words.rend());  // as the library wants them
    try {
      app_.parse(std::move(reversed));
    } catch (const CLI::ParseError& error) {
      return absl::InvalidArgumentError(error.what());
    }
    return absl::OkStatus();
  }

  bool Has(const std::string& name) const { return app_.count(name) > 0; }
  const std::string& Value(const std::string& name) { return values_[name]; }
  std::string Help() const { return app_.help(); }

 private:
  CLI::App app_;
  std::map<std::string, std::string> values_;  // never moves its strings
};

absl::StatusOr<int> ParseNp(Flags& flags, absl::string_view command) {
  if (!flags.Has("--num-proc")) {
    return absl::InvalidArgumentError(
        absl::StrCat("-np is missing: how many processes? For example: ", command, " -np 4 python train.py"));
  }
  const std::string& text = flags.Value("--num-proc");
  int np = 0;
  const absl::string_view digits = absl::StripPrefix(text, "-");
  const bool number = !digits.empty() && digits.find_first_not_of("0123456789") == absl::string_view::npos;
  if (!number) return absl::InvalidArgumentError(absl::StrCat("-np ", Quote(text), " is not a whole number"));
  if (!absl::SimpleAtoi(text, &np) || np > kMaxSlots) {
    return absl::InvalidArgumentError(absl::StrCat(
        "-np ", text, ": ", text[0] == '-' ? "must be at least 1" : absl::StrCat("more than ", kMaxSlots)));
  }
  if (np < 1) return absl::InvalidArgumentError(absl::StrCat("-np ", text, ": must be at least 1"));
  return np;
}

absl::Status CheckCommand(const NormalisedWords& words, bool hosts_given, absl::string_view command) {
  if (words.command.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no program to run. For example: ", command, " -np 4 python train.py"));
  }
  const std::string& program = words.command[0];
  if (program.empty()) return absl::InvalidArgumentError("the program's name is empty");
  if (hosts_given && !words.after_separator && LooksLikeHosts(program)) {
    return absl::InvalidArgumentError(
        absl::StrCat(Quote(program),
                     " was taken as the program, and looks like a host: separate hosts by commas and no "
                     "blanks, as in -H a:1,b:1 (or write -- before a program of this name)"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<HostSpec>> ParseHosts(Flags& flags, int np, const CommandLineInputs& inputs) {
  if (flags.Has("--hosts") && flags.Has("--hostfile")) {
    return absl::InvalidArgumentError("-H and --hostfile are two answers to one question; give one of them");
  }
  if (flags.Has("--hosts")) return ParseHostList("-H", flags.Value("--hosts"));
  if (!flags.Has("--hostfile")) return std::vector<HostSpec>{{"localhost", np}};
  const std::string& path = flags.Value("--hostfile");
  ASSIGN_OR_RETURN(const std::string text, inputs.read_file(path), std::move(_) << "--hostfile");
  return ParseHostfile(path, text);
}

absl::Status CheckSlots(int np, const std::vector<HostSpec>& hosts) {
  int64_t slots = 0;
  for (const HostSpec& host : hosts) slots += host.slots;
  if (np <= slots) return absl::OkStatus();
  const std::string hint = hosts.size() == 1
                               ? absl::StrCat("write ", DescribeHosts({{hosts[0].name, np}}), ", or a smaller -np")
                               : "give the hosts more slots (HOST:N), add hosts, or ask for less with -np";
  return absl::InvalidArgumentError(absl::StrCat("asked for ", np, np == 1 ? " process" : " processes", ", there ",
                                                 slots == 1 ? "is 1 slot" : absl::StrCat("are ", slots, " slots"), ": ",
                                                 DescribeHosts(hosts), "; ", hint));
}

absl::StatusOr<absl::optional<absl::Duration>> ParseStartTimeout(const CommandLineInputs& inputs) {
  const absl::optional<std::string> text = inputs.environment(env::kStartTimeout);
  if (!text || text->empty()) return absl::optional<absl::Duration>();
  int seconds = 0;
  if (!absl::SimpleAtoi(*text, &seconds) || seconds < 1) {
    return absl::InvalidArgumentError(absl::StrCat("the variable ", env::kStartTimeout, " is ", Quote(*text),
                                                   "; expected whole seconds, at least 1"));
  }
  return absl::optional<absl::Duration>(absl::Seconds(seconds));
}

absl::StatusOr<LaunchRequest> MakeRequest(Flags& flags, NormalisedWords words, const CommandLineInputs& inputs,
                                          absl::string_view command) {
  LaunchRequest request;
  request.called_as = std::string(command);
  RETURN_IF_ERROR(CheckCommand(words, flags.Has("--hosts"), command));
  ASSIGN_OR_RETURN(request.np, ParseNp(flags, command));
  ASSIGN_OR_RETURN(request.hosts, ParseHosts(flags, request.np, inputs));
  RETURN_IF_ERROR(CheckSlots(request.np, request.hosts));
  ASSIGN_OR_RETURN(request.start_timeout, ParseStartTimeout(inputs));
  request.command = std::move(words.command);
  request.verbose = flags.Has("--verbose");
  request.timestamps = flags.Has("--prefix-output-with-timestamp");
  request.output_directory = flags.Value("--output-filename");
  return request;
}

absl::StatusOr<CommandLine> ParseRun(absl::Span<const std::string> arguments, const CommandLineInputs& inputs,
                                     const std::string& command) {
  ASSIGN_OR_RETURN(NormalisedWords words, Normalise(arguments));
  Flags flags(command);
  RETURN_IF_ERROR(flags.Parse(words.Canonical()));
  if (flags.Has("--help")) return CommandLine(PrintText{flags.Help()});
  if (flags.Has("--version")) return CommandLine(PrintText{VersionOf(command) + "\n"});
  if (flags.Has("--check-build")) return CommandLine(CheckBuildRequest{flags.Has("--verbose")});
  ASSIGN_OR_RETURN(LaunchRequest request, MakeRequest(flags, std::move(words), inputs, command));
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
  constexpr absl::string_view kWords[] = {"run", "--help", "--version"};
  const auto error = [](const std::string& what) {
    return MakeError("farandole", absl::InvalidArgumentError(what), FarandoleUsageLine());
  };
  if (arguments.empty()) return error("what should be done? \"farandole run\" starts a job, --help says more");
  const std::string& word = arguments[0];
  if (word == "run") return ParseRunOrError(arguments.subspan(1), inputs, kFarandoleRun);
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
