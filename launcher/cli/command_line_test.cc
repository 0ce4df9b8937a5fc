#include "launcher/cli/command_line.h"

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launcher/cli/env_names.h"
#include "tools/base/prng.h"
#include "tools/base/version.h"

namespace farandole {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr char kUsage[] = "\nusage: horovodrun -np N [-H HOST:SLOTS,...] [OPTIONS] PROGRAM [ARGUMENTS]\n";

struct World {
  std::map<std::string, std::string> environment, files;
};

CommandLine Parse(std::vector<std::string> arguments, const World& world = {}) {
  CommandLineInputs inputs;
  inputs.arguments = std::move(arguments);
  inputs.environment = [&](const std::string& name) -> absl::optional<std::string> {
    const auto it = world.environment.find(name);
    if (it == world.environment.end()) return absl::nullopt;
    return it->second;
  };
  inputs.read_file = [&](const std::string& path) -> absl::StatusOr<std::string> {
    const auto it = world.files.find(path);
    if (it == world.files.end()) return absl::NotFoundError(absl::StrCat("open ", path, ": No such file or directory"));
    return it->second;
  };
  return ParseCommandLine(inputs);
}

CommandLine ParseText(const std::string& text, const World& world = {}) {
  return Parse(absl::StrSplit(text, ' '), world);
}

LaunchRequest Request(const CommandLine& parsed) {
  if (const auto* error = std::get_if<UsageError>(&parsed)) ADD_FAILURE() << error->message;
  const auto* request = std::get_if<LaunchRequest>(&parsed);
  return request != nullptr ? *request : LaunchRequest();
}

std::string Error(const CommandLine& parsed) {
  const auto* error = std::get_if<UsageError>(&parsed);
  return error != nullptr ? error->message : "no error";
}

TEST(CommandLine, APlainJob) {
  const LaunchRequest request = Request(ParseText("/usr/bin/horovodrun -np 4 -H localhost:4 python train.py -v"));
  EXPECT_EQ(request.np, 4);
  EXPECT_EQ(request.hosts, (std::vector<HostSpec>{{"localhost", 4}}));
  EXPECT_THAT(request.command, ElementsAre("python", "train.py", "-v"));
  EXPECT_FALSE(request.verbose);
  EXPECT_FALSE(request.timestamps);
  EXPECT_EQ(request.output_directory, "");
  EXPECT_FALSE(request.start_timeout.has_value());
}

TEST(CommandLine, EveryOptionReachesTheRequest) {
  const LaunchRequest request =
      Request(ParseText("farandole run -np 2 --hostfile hosts --verbose -prefix-timestamp --output-filename out -- t",
                        {{{env::kStartTimeout, "90"}}, {{"hosts", "a slots=1\n[::1] slots=1\n"}}}));
  EXPECT_EQ(request.hosts, (std::vector<HostSpec>{{"a", 1}, {"::1", 1}}));
  EXPECT_TRUE(request.verbose);
  EXPECT_TRUE(request.timestamps);
  EXPECT_EQ(request.output_directory, "out");
  EXPECT_EQ(request.start_timeout, absl::Seconds(90));
  EXPECT_THAT(request.command, ElementsAre("t"));
}

TEST(CommandLine, WithoutHostsTheJobRunsHere) {
  EXPECT_EQ(Request(ParseText("horovodrun -np 3 t")).hosts, (std::vector<HostSpec>{{"localhost", 3}}));
}

TEST(CommandLine, TheLastOfTheSameOptionCounts) { EXPECT_EQ(Request(ParseText("horovodrun -np 3 -np 2 t")).np, 2); }

TEST(CommandLine, ArgumentsOfTheProgramAreNotTouched) {
  const LaunchRequest request = Request(Parse({"horovodrun", "-np", "1", "t", "a b", "", "$X", "\xff", "--np=3"}));
  EXPECT_THAT(request.command, ElementsAre("t", "a b", "", "$X", "\xff", "--np=3"));
}

TEST(CommandLine, ASingleIpv6HostInBracketsIsNotTakenForAList) {
  EXPECT_EQ(Request(ParseText("horovodrun -np 1 -H [::1] t")).hosts, (std::vector<HostSpec>{{"::1", 1}}));
}

struct ErrorCase {
  std::string text;
  std::string message;
};

TEST(CommandLine, WhatCannotBeStartedIsOneMessageAndTheUsageLine) {
  const ErrorCase kCases[] = {
      {"horovodrun -np 2", "no program to run. For example: horovodrun -np 4 python train.py"},
      {"horovodrun", "no program to run. For example: horovodrun -np 4 python train.py"},
      {"horovodrun t", "-np is missing: how many processes? For example: horovodrun -np 4 python train.py"},
      {"horovodrun -np 0 t", "-np 0: must be at least 1"},
      {"horovodrun -np -3 t", "-np -3: must be at least 1"},
      {"horovodrun -np -99999999999 t", "-np -99999999999: must be at least 1"},
      {"horovodrun -np 99999999999 t", "-np 99999999999: more than 100000"},
      {"horovodrun -np two t", "-np \"two\" is not a whole number"},
      {"horovodrun -np 2.5 t", "-np \"2.5\" is not a whole number"},
      {"horovodrun -np 5 -H localhost:2 t",
       "asked for 5 processes, there are 2 slots: localhost:2; write localhost:5, or a smaller -np"},
      {"horovodrun -np 2 -H localhost t",
       "asked for 2 processes, there is 1 slot: localhost:1; write localhost:2, or a smaller -np"},
      {"horovodrun -np 9 -H a:2,b:4 t",
       "asked for 9 processes, there are 6 slots: a:2, b:4; give the hosts more slots (HOST:N), add hosts, or ask for "
       "less with -np"},
      {"horovodrun -np 2 -H a:1 b:1 t",
       "\"b:1\" was taken as the program, and looks like a host: separate hosts by commas and no blanks, as in -H "
       "a:1,b:1 (or write -- before a program of this name)"},
      {"horovodrun -np 2 -H a:1,x:y t", "-H, column 7: \"x:y\": \"y\" is not a number of slots; write HOST:4"},
      {"horovodrun -np 2 --hostfile nowhere t", "--hostfile: open nowhere: No such file or directory"},
      {"horovodrun -np 2 -H a:2 --hostfile h t", "-H and -hostfile are two answers to one question; give one of them"},
      {"horovodrun -np 2 --bogus t", "there is no option \"--bogus\""},
  };
  for (const ErrorCase& c : kCases) EXPECT_EQ(Error(ParseText(c.text)), "horovodrun: " + c.message + kUsage) << c.text;
}

TEST(CommandLine, ABadHostfileNamesFileLineAndText) {
  EXPECT_THAT(Error(ParseText("horovodrun -np 1 --hostfile h t", {{}, {{"h", "a\nb lots=8\n"}}})),
              HasSubstr("horovodrun: h, line 2, column 3: \"b lots=8\": a host has no \"lots\"; did you mean slots?"));
}

TEST(CommandLine, ABadStartTimeoutInTheEnvironmentIsAnError) {
  for (const char* text : {"soon", "0", "-1", "3.5"}) {
    EXPECT_THAT(Error(ParseText("horovodrun -np 1 t", {{{env::kStartTimeout, text}}, {}})),
                HasSubstr("the variable HOROVOD_START_TIMEOUT "));
  }
}

TEST(CommandLine, AProgramThatLooksLikeAHostRunsAfterTheSeparator) {
  EXPECT_THAT(Request(ParseText("horovodrun -np 1 -H a:1 -- b:1 t")).command, ElementsAre("b:1", "t"));
}

TEST(CommandLine, TheProgramIsTheOriginalOnlyUnderItsName) {
  EXPECT_THAT(Error(ParseText("farandole -np 2 t")), HasSubstr("farandole: there is no command \"-np\""));
  EXPECT_THAT(Error(ParseText("farandole rum -np 2 t")), HasSubstr("there is no command \"rum\"; did you mean run?"));
  EXPECT_THAT(Error(ParseText("farandole")), EndsWith("usage: farandole run|bench|--help|--version\n"));
  EXPECT_THAT(Error(Parse({})), HasSubstr("what should be done?"));
}

TEST(CommandLine, VersionsAreBare) {
  const auto text = [](const std::string& line) {
    const CommandLine parsed = ParseText(line);
    const auto* print = std::get_if<PrintText>(&parsed);
    return print != nullptr ? print->text : "no text";
  };
  const std::string ours = absl::StrCat(kVersion, "\n");
  EXPECT_EQ(text("farandole --version"), ours);
  EXPECT_EQ(text("farandole run -v"), ours);
  EXPECT_EQ(text("horovodrun -v"), absl::StrCat(kHorovodVersion, "+farandole", ours));
}

TEST(CommandLine, CheckBuildNeedsNoProcesses) {
  const CommandLine parsed = ParseText("horovodrun --check-build --verbose");
  ASSERT_TRUE(std::holds_alternative<CheckBuildRequest>(parsed));
  EXPECT_TRUE(std::get<CheckBuildRequest>(parsed).verbose);
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// To renew a file after a wanted change: horovodrun --help > launcher/cli/testdata/horovodrun_help.txt
TEST(CommandLine, HelpIsTheStoredText) {
  const std::pair<std::string, std::string> kCases[] = {{"horovodrun --help", "horovodrun_help.txt"},
                                                        {"farandole run --help", "farandole_run_help.txt"},
                                                        {"farandole --help", "farandole_help.txt"}};
  for (const auto& [line, file] : kCases) {
    const CommandLine parsed = ParseText(line);
    ASSERT_TRUE(std::holds_alternative<PrintText>(parsed)) << line;
    EXPECT_EQ(std::get<PrintText>(parsed).text, ReadFile("launcher/cli/testdata/" + file)) << line;
  }
}

TEST(CommandLine, RandomWordsGiveAnAnswer) {
  const char* const kWords[] = {"-np",        "2", "-H", "a:1,b:1",   "--hostfile", "h",   "--verbose",     "t",
                                "--",         "",  "-v", "--dry-run", "--env",      "X=1", "--config-file", "--min-np",
                                "--autotune", "=", "\n"};
  Prng prng(11);
  int requests = 0;
  for (int round = 0; round < 10'000; ++round) {
    std::vector<std::string> words = {"horovodrun"};
    for (uint64_t count = prng.Below(8) + 2; count > 0; --count) words.push_back(kWords[prng.Below(std::size(kWords))]);
    requests += std::holds_alternative<LaunchRequest>(Parse(words));
  }
  EXPECT_GT(requests, 10);
}

}  // namespace
}  // namespace farandole
