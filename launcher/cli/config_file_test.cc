#include "launcher/cli/config_file.h"

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/prng.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::map<std::string, std::string> Values(const ConfigFile& file) {
  std::map<std::string, std::string> values;
  for (const ConfigFile::Entry& entry : file.entries) values[entry.name] = entry.setting.value;
  return values;
}

TEST(ConfigFile, HasEveryKeyOfTheOriginal) {
  ASSERT_OK_AND_ASSIGN(const ConfigFile file, ParseConfigFile("c.yaml", R"(
controller: mpi
params:
  fusion_threshold_mb: 32
  cycle_time_ms: 2.5
  cache_capacity: 2048
  hierarchical_allreduce: True
  hierarchical_allgather: no
  torus_allreduce: "true"
autotune:
  enabled: true
  log_file: 'a b.txt'
  warmup_samples: 5
  steps_per_sample: 20
  bayes_opt_max_samples: 30
  gaussian_process_noise: 0.2
timeline:
  filename: t.json
  mark_cycles: 1
stall_check:
  enabled: off
  warning_time_seconds: 120
  shutdown_time_seconds: 240
library_options:
  mpi_threads_disable: true
  num_nccl_streams: 2
  thread_affinity: 1
  gloo_timeout_seconds: 60
logging:
  level: INFO
  with_timestamp: false
)"));
  EXPECT_THAT(file.warnings, IsEmpty());
  const std::map<std::string, std::string> expected = {
      {"--controller", "mpi"},
      {"--fusion-threshold-mb", "32"},
      {"--cycle-time-ms", "2.5"},
      {"--cache-capacity", "2048"},
      {"--hierarchical-allreduce", "1"},
      {"--hierarchical-allgather", "0"},
      {"--torus-allreduce", "1"},
      {"--autotune", "1"},
      {"--autotune-log-file", "a b.txt"},
      {"--autotune-warmup-samples", "5"},
      {"--autotune-steps-per-sample", "20"},
      {"--autotune-bayes-opt-max-samples", "30"},
      {"--autotune-gaussian-process-noise", "0.2"},
      {"--timeline-filename", "t.json"},
      {"--timeline-mark-cycles", "1"},
      {"--stall-check", "0"},
      {"--stall-check-warning-time-seconds", "120"},
      {"--stall-check-shutdown-time-seconds", "240"},
      {"--mpi-threads-disable", "1"},
      {"--num-nccl-streams", "2"},
      {"--thread-affinity", "1"},
      {"--gloo-timeout-seconds", "60"},
      {"--log-level", "INFO"},
      {"--log-with-timestamp", "0"},
  };
  EXPECT_EQ(Values(file), expected);
  EXPECT_EQ(file.entries[2].setting.origin, "c.yaml, line 5: params.cycle_time_ms");
}

TEST(ConfigFile, ASectionThatIsThereSaysWhatItLeavesOut) {
  using Map = std::map<std::string, std::string>;
  EXPECT_EQ(Values(*ParseConfigFile("c", "autotune:\n  log_file: x\n")),
            (Map{{"--autotune", "0"}, {"--autotune-log-file", "x"}}));
  EXPECT_EQ(Values(*ParseConfigFile("c", "stall_check:\n  warning_time_seconds: 3\n")),
            (Map{{"--stall-check", "1"}, {"--stall-check-warning-time-seconds", "3"}}));
  EXPECT_EQ(Values(*ParseConfigFile("c", "autotune:\nstall_check:\nparams:\n  cycle_time_ms:\n")), Map());
  EXPECT_EQ(Values(*ParseConfigFile("c", "")), Map());
  EXPECT_EQ(Values(*ParseConfigFile("c", "# nothing\n")), Map());
}

TEST(ConfigFile, UnknownKeysAreIgnoredAndTold) {
  ASSERT_OK_AND_ASSIGN(const ConfigFile file,
                       ParseConfigFile("c.yaml",
                                       "params:\n  fusion_treshold_mb: 3\n  cycle_time_ms: 1\nlogging:\n  "
                                       "hide_timestamp: true\nprams: {a: 1}\nzzzzzzzzzz: 1\n"));
  EXPECT_EQ(Values(file).size(), 1u);
  EXPECT_THAT(file.warnings,
              ElementsAre("c.yaml, line 2: there is no key \"params.fusion_treshold_mb\"; ignored (did you mean "
                          "fusion_threshold_mb?)",
                          HasSubstr("c.yaml, line 5: there is no key \"logging.hide_timestamp\"; ignored"),
                          "c.yaml, line 6: there is no key \"prams\"; ignored (did you mean params?)",
                          "c.yaml, line 7: there is no key \"zzzzzzzzzz\"; ignored"));
}

TEST(ConfigFile, WhatMakesNoSenseIsAnErrorWithItsPlace) {
  const std::pair<std::string, std::string> kCases[] = {
      {"a: [", "c.yaml, line 1, column 1: not YAML: end of sequence flow not found"},
      {"params:\n\tx: 1\n", "c.yaml, line 2, column 3: not YAML: "},
      {"3", "c.yaml, line 1, column 1: expected sections, such as \"params:\""},
      {"- a\n", "c.yaml, line 1, column 1: expected sections, such as \"params:\""},
      {"params: 3\n", "c.yaml, line 1, column 9: params is a section; expected keys under it"},
      {"params:\n  cycle_time_ms: [1]\n", "c.yaml, line 2, column 18: params.cycle_time_ms takes one value"},
      {"params:\n  cycle_time_ms: 1\n  cycle_time_ms: 2\n",
       "c.yaml, line 3, column 3: \"cycle_time_ms\" is here twice (line 2)"},
      {"autotune:\n  enabled: perhaps\n",
       "c.yaml, line 2, column 12: autotune.enabled \"perhaps\" is neither true nor false"},
      {"controller: jsrun\n", "c.yaml, line 1, column 13: controller \"jsrun\" is not one of gloo, mpi"},
      {"? [a]\n: 1\n", "c.yaml, line 1, column 3: a key must be a name"},
      {std::string((1 << 20) + 1, '#'), "c.yaml: larger than 1048576 bytes; is it a config file?"},
  };
  for (const auto& [text, message] : kCases) {
    EXPECT_THAT(ParseConfigFile("c.yaml", text),
                StatusIs(absl::StatusCode::kInvalidArgument, ::testing::StartsWith(message)))
        << text.substr(0, 100);
  }
}

TEST(ConfigFile, NestingWithoutEndIsAnErrorAndNotACrash) {
  for (const char* piece : {"[", "{a: ", "- ", "? "}) {
    std::string text;
    for (int i = 0; i < 100'000; ++i) text += piece;
    EXPECT_FALSE(ParseConfigFile("c.yaml", text).ok()) << piece;
  }
}

TEST(ConfigFile, RandomBytesGiveAnErrorOrAConfig) {
  const char* const kPieces[] = {"params:", "\n",        "  ",      "cycle_time_ms", ": ", "1",  "[",    "]", "{", "}",
                                 "&a ",     "*a",        "- ",      "!!x ",          "'",  "\"", "\xff", "#", "|", ">",
                                 "---\n",   "autotune:", "enabled", "true",          "<<"};
  Prng prng(5);
  int good = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    for (uint64_t i = prng.Below(12); i > 0; --i) text += kPieces[prng.Below(std::size(kPieces))];
    const auto file = ParseConfigFile("c", text);
    good += file.ok();
    EXPECT_TRUE(file.ok() || absl::IsInvalidArgument(file.status())) << file.status();
  }
  EXPECT_GT(good, 500);
}

}  // namespace
}  // namespace farandole
