#include "launcher/plan/dry_run.h"

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launcher/cli/command_line.h"
#include "nlohmann/json.hpp"

namespace farandole {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

LaunchRequest Parsed(std::vector<std::string> words, const std::string& hostfile = "") {
  CommandLineInputs inputs;
  inputs.arguments = std::move(words);
  inputs.arguments.insert(inputs.arguments.begin(), "horovodrun");
  inputs.environment = [](const std::string&) { return absl::optional<std::string>(); };
  inputs.read_file = [&](const std::string&) -> absl::StatusOr<std::string> { return hostfile; };
  const CommandLine line = ParseCommandLine(inputs);
  if (const auto* error = std::get_if<UsageError>(&line)) ADD_FAILURE() << error->message;
  const auto* request = std::get_if<LaunchRequest>(&line);
  return request != nullptr ? *request : LaunchRequest();
}

DryRunInputs Inputs(const LaunchRequest& request, ResolvedHosts resolved) {
  const absl::StatusOr<DriverConfig> config = MakeDriverConfig(request);
  EXPECT_TRUE(config.ok()) << config.status();
  const WorkerEnvironments environments({{"PATH=/bin", "API_TOKEN=secret", "OLDPWD=/old"},
                                         request.worker_variables,
                                         request.given_variables,
                                         request.denied_variables});
  return {&request,     *config, std::move(resolved), "/work dir", environments.Names(false), environments.Names(true),
          request.notes};
}

const std::vector<std::string>& Words() {
  static const auto* const kWords = new std::vector<std::string>{"-np",
                                                                 "3",
                                                                 "-H",
                                                                 "localhost:2,me@gpu1:2 port=2222,spare:4",
                                                                 "--dry-run",
                                                                 "--env",
                                                                 "GIVEN=secret",
                                                                 "--env-deny",
                                                                 "API_*",
                                                                 "--cycle-time-ms",
                                                                 "20",
                                                                 "--port-range",
                                                                 "9000-9100",
                                                                 "--grace",
                                                                 "2.5",
                                                                 "--network-interface",
                                                                 "eth0,gpu1=10.0.0.0/8",
                                                                 "python",
                                                                 "train it.py",
                                                                 "\xff"};
  return *kWords;
}
const ResolvedHosts& Known() {
  static const auto* const kKnown =
      new ResolvedHosts{{"localhost", {true, {"127.0.0.1"}}}, {"gpu1", {false, {"10.0.0.1", "fd00::1"}}}};
  return *kKnown;
}

TEST(DryRun, TextShowsHostsRanksNamesAndNoValues) {
  const LaunchRequest request = Parsed(Words());
  const std::string text = DryRunText(Inputs(request, Known()));
  EXPECT_THAT(text, HasSubstr("3 processes on 2 hosts: python \"train it.py\" \"\xff\"\nin /work dir\n"));
  EXPECT_THAT(text, HasSubstr("\nhosts:\n"
                              "  localhost  2 processes in 2 slots, this machine, 127.0.0.1\n"
                              "  gpu1  1 process in 2 slots, over ssh as me at port 2222, 10.0.0.1 fd00::1\n"
                              "  spare  0 processes in 4 slots, no address known here\n"));
  EXPECT_THAT(text, HasSubstr("  0  localhost  0 of 2  0 of 2\n"
                              "  1  localhost  1 of 2  0 of 1\n"
                              "  2  gpu1  0 of 1  1 of 2\n"));
  EXPECT_THAT(text, HasSubstr("  addresses: eth0, gpu1=10.0.0.0/8\n  ports: 9000 to 9100\n"));
  EXPECT_THAT(text, HasSubstr("  from TERM to KILL: 2.5s\n"));
  EXPECT_THAT(text, HasSubstr("variables of processes here (names only):\n  set: GIVEN HOROVOD_CONTROLLER "));
  EXPECT_THAT(text, HasSubstr("\n  inherited: OLDPWD PATH\n  kept home: API_TOKEN\n"));
  EXPECT_THAT(text, HasSubstr("\n  inherited: PATH\n  kept home: API_TOKEN OLDPWD\n"));
  EXPECT_THAT(text, HasSubstr("  --cycle-time-ms 20  (--cycle-time-ms)\n"));
  EXPECT_THAT(text, HasSubstr("\nnotes:\n  --cycle-time-ms: "));
  EXPECT_THAT(text, Not(HasSubstr("secret")));
}

TEST(DryRun, JsonHasTheSame) {
  const LaunchRequest request = Parsed(Words());
  const std::string text = DryRunJson(Inputs(request, Known()));
  EXPECT_THAT(text, Not(HasSubstr("secret")));
  const json plan = json::parse(text);
  EXPECT_EQ(plan["np"], 3);
  EXPECT_EQ(plan["command"], (json{"python", "train it.py", "\xEF\xBF\xBD"}));
  EXPECT_EQ(plan["working_directory"], "/work dir");
  EXPECT_EQ(plan["grace_seconds"], 2.5);
  ASSERT_EQ(plan["hosts"].size(), 3u);
  EXPECT_EQ(plan["hosts"][1], (json{{"name", "gpu1"},
                                    {"start", "ssh"},
                                    {"user", "me"},
                                    {"ssh_port", 2222},
                                    {"slots", 2},
                                    {"processes", 1},
                                    {"addresses", {"10.0.0.1", "fd00::1"}},
                                    {"reached_by", nullptr}}));
  EXPECT_EQ(plan["hosts"][0]["start"], "local");
  EXPECT_EQ(plan["hosts"][2]["start"], "none");
  ASSERT_EQ(plan["ranks"].size(), 3u);
  EXPECT_EQ(plan["ranks"][2], (json{{"rank", 2},
                                    {"host", "gpu1"},
                                    {"slot", 0},
                                    {"local_rank", 0},
                                    {"local_size", 1},
                                    {"cross_rank", 1},
                                    {"cross_size", 2}}));
  EXPECT_EQ(plan["network"]["port_range"], (json{9000, 9100}));
  EXPECT_EQ(plan["network"]["interfaces"][1], (json{{"host", "gpu1"}, {"wanted", "10.0.0.0/8"}}));
  EXPECT_EQ(plan["environment"]["kept_home"], json::array({"API_TOKEN"}));
  EXPECT_EQ(plan["environment"]["remote"]["inherited"], json::array({"PATH"}));
  EXPECT_EQ(plan["notes"].size(), 1u);
}

TEST(DryRun, TenThousandHostsEachWithTheirRanksAndTheirPlaceInTheTree) {
  constexpr int kHosts = 10'000, kSlots = 8;
  std::string hostfile;
  ResolvedHosts resolved;
  for (int i = 0; i < kHosts; ++i) absl::StrAppend(&hostfile, "node", i, " slots=", kSlots, "\n");
  const LaunchRequest request =
      Parsed({"-np", absl::StrCat(kHosts * kSlots), "--hostfile", "h", "--dry-run", "t"}, hostfile);
  const json plan = json::parse(DryRunJson(Inputs(request, resolved)));
  ASSERT_EQ(plan["hosts"].size(), static_cast<size_t>(kHosts));
  ASSERT_EQ(plan["ranks"].size(), static_cast<size_t>(kHosts * kSlots));
  std::map<std::string, int> depth;
  for (int i = 0; i < kHosts; ++i) {
    const json& host = plan["hosts"][i];
    const std::string name = absl::StrCat("node", i);
    ASSERT_EQ(host["name"], name);
    ASSERT_EQ(host["processes"], kSlots);
    if (i < 32) {
      ASSERT_TRUE(host["reached_by"].is_null());
    }
    // Whoever helps stands before.
    depth[name] = host["reached_by"].is_null() ? 1 : depth.at(host["reached_by"]) + 1;
    ASSERT_LE(depth[name], 4);
  }
  for (int rank = 0; rank < kHosts * kSlots; ++rank) {
    const json& ranked = plan["ranks"][rank];
    ASSERT_EQ(ranked["rank"], rank);
    ASSERT_EQ(ranked["host"], absl::StrCat("node", rank / kSlots));
    ASSERT_EQ(ranked["local_rank"], rank % kSlots);
    ASSERT_EQ(ranked["cross_rank"], rank / kSlots);
    ASSERT_EQ(ranked["cross_size"], kHosts);
  }
}

}  // namespace
}  // namespace farandole
