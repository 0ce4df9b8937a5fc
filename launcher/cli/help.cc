#include "launcher/cli/help.h"

#include <memory>

#include "CLI/App.hpp"
#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "launcher/cli/options.h"
#include "tools/base/version.h"

namespace farandole {
namespace {

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

constexpr int kColumn = 52;  // where help begins

constexpr char kExamples[] = R"(Examples:
  # four processes on this machine
  COMMAND -np 4 python train.py

  # the same, saying where
  COMMAND -np 4 -H localhost:4 python train.py

  # on two hosts that ssh reaches
  COMMAND -np 8 -H gpu1:4,me@gpu2:4 python train.py

  # hosts from a file, output also in runs/1/rank.0/stdout and so on
  COMMAND -np 4 --hostfile hosts.txt --output-filename runs/1 python train.py --epochs 3

Everything from the program on belongs to it. The job ends with the exit code of the
process that failed first, 128 + signal if one was killed, 127 if the program could not
be executed, 2 if nothing was started, 130 after Ctrl-C.)";

}  // namespace

std::string UsageLine(absl::string_view command) {
  return absl::StrCat("usage: ", command, " -np N [-H HOST:SLOTS,...] [OPTIONS] PROGRAM [ARGUMENTS]\n");
}

std::string RunHelp(const std::string& command) {
  CLI::App app("Starts PROGRAM in N processes that train together.", command);
  app.formatter(std::make_shared<HelpFormatter>());
  app.get_formatter()->column_width(kColumn);
  app.set_help_flag();
  app.footer(absl::StrReplaceAll(kExamples, {{"COMMAND", command}}));
  std::string value;
  for (const OptionSpec& spec : AllOptions()) {
    if (spec.group.empty()) continue;
    const std::string name(spec.Canonical()), help(spec.help);
    CLI::Option* const option = spec.values == 0 ? app.add_flag(name, help) : app.add_option(name, value, help);
    option->type_name(std::string(spec.value_name))->group(std::string(spec.group));
  }
  return absl::StrReplaceAll(app.help(), {{"\n\n\n", "\n\n"}});  // one blank line between groups
}

std::string FarandoleUsageLine() { return "usage: farandole run|bench|--help|--version\n"; }

std::string FarandoleHelp() {
  return absl::StrCat(FarandoleUsageLine(),
                      "\n"
                      "Starts a training program on many processes and watches over them.\n"
                      "\n"
                      "  run           start a job; \"farandole run --help\" has its options\n"
                      "  bench         measure the collectives on this machine; \"farandole bench --help\"\n"
                      "  -v,--version  show the version, and end\n"
                      "  -h,--help     show this, and end\n"
                      "\n"
                      "The same program under the name horovodrun takes the original's command line:\n"
                      "\n"
                      "  horovodrun -np 4 -H localhost:4 python train.py\n");
}

std::string VersionOf(absl::string_view command) {
  return command == "horovodrun" ? absl::StrCat(kHorovodVersion, "+farandole", kVersion) : std::string(kVersion);
}

}  // namespace farandole
