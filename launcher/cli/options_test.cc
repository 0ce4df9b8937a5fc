// Every option: what it comes to, from the command line and, where it has a key, from the config file.

#include "launcher/cli/options.h"

#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/types/optional.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launcher/cli/command_line.h"

namespace farandole {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Words = std::vector<std::string>;
using Files = std::map<std::string, std::string>;

CommandLine Parse(Words words, const Files& files = {}, const std::map<std::string, std::string>& environment = {}) {
  CommandLineInputs inputs;
  inputs.arguments = {"horovodrun"};
  inputs.arguments.insert(inputs.arguments.end(), words.begin(), words.end());
  inputs.environment = [&](const std::string& name) -> absl::optional<std::string> {
    const auto it = environment.find(name);
    if (it == environment.end()) return absl::nullopt;
    return it->second;
  };
  inputs.read_file = [&](const std::string& path) -> absl::StatusOr<std::string> { return files.at(path); };
  return ParseCommandLine(inputs);
}

// `text` cut at blanks, with -np 2 before and a program after it.
Words Full(const std::string& text) {
  Words words = absl::StrSplit(text, ' ', absl::SkipEmpty());
  words.insert(words.begin(), {"-np", "2"});
  words.push_back("t");
  return words;
}

LaunchRequest Request(const CommandLine& parsed) {
  if (const auto* error = std::get_if<UsageError>(&parsed)) ADD_FAILURE() << error->message;
  const auto* request = std::get_if<LaunchRequest>(&parsed);
  return request != nullptr ? *request : LaunchRequest();
}

std::string Error(const CommandLine& parsed) {
  const auto* error = std::get_if<UsageError>(&parsed);
  return error != nullptr ? error->message.substr(0, error->message.find('\n')) : "no error";
}

struct VariableCase {
  std::string option;    // what is written on the command line
  std::string config;    // the same in a config file; empty: it has no key
  std::string variable;  // what workers get, several with blanks between
  std::string note;      // a part of the note; empty: none
};

const std::vector<VariableCase>& VariableCases() {
  static const auto* const kCases = new std::vector<VariableCase>{
      {"--fusion-threshold-mb 32", "params: {fusion_threshold_mb: 32}", "HOROVOD_FUSION_THRESHOLD=33554432", ""},
      {"--fusion-threshold-mb 0", "params: {fusion_threshold_mb: 0}", "HOROVOD_FUSION_THRESHOLD=0", ""},
      {"--cycle-time-ms 20", "params: {cycle_time_ms: 20}", "HOROVOD_CYCLE_TIME=20.0", "no cycle"},
      {"--cycle-time-ms 0.5", "params: {cycle_time_ms: 0.5}", "HOROVOD_CYCLE_TIME=0.5", "no cycle"},
      {"--cache-capacity 7", "params: {cache_capacity: 7}", "HOROVOD_CACHE_CAPACITY=7", "no response cache"},
      {"--hierarchical-allreduce", "params: {hierarchical_allreduce: true}", "HOROVOD_HIERARCHICAL_ALLREDUCE=1",
       "one way"},
      {"--no-hierarchical-allreduce", "params: {hierarchical_allreduce: false}", "HOROVOD_HIERARCHICAL_ALLREDUCE=0",
       ""},
      {"--hierarchical-allgather", "params: {hierarchical_allgather: true}", "HOROVOD_HIERARCHICAL_ALLGATHER=1",
       "one way"},
      {"--no-hierarchical-allgather", "params: {hierarchical_allgather: false}", "HOROVOD_HIERARCHICAL_ALLGATHER=0",
       ""},
      {"--torus-allreduce", "params: {torus_allreduce: true}", "HOROVOD_TORUS_ALLREDUCE=1", "one way"},
      {"--no-torus-allreduce", "params: {torus_allreduce: false}", "HOROVOD_TORUS_ALLREDUCE=0", ""},
      {"--autotune", "autotune: {enabled: true}", "HOROVOD_AUTOTUNE=1", "does not tune itself"},
      {"--no-autotune", "autotune: {enabled: false}", "HOROVOD_AUTOTUNE=0", ""},
      {"--autotune --autotune-log-file f", "autotune: {enabled: true, log_file: f}",
       "HOROVOD_AUTOTUNE=1 HOROVOD_AUTOTUNE_LOG=f", "does not tune itself"},
      {"--autotune --autotune-warmup-samples 1", "autotune: {enabled: true, warmup_samples: 1}",
       "HOROVOD_AUTOTUNE=1 HOROVOD_AUTOTUNE_WARMUP_SAMPLES=1", "does not tune itself"},
      {"--autotune --autotune-steps-per-sample 2", "autotune: {enabled: true, steps_per_sample: 2}",
       "HOROVOD_AUTOTUNE=1 HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE=2", "does not tune itself"},
      {"--autotune --autotune-bayes-opt-max-samples 3", "autotune: {enabled: true, bayes_opt_max_samples: 3}",
       "HOROVOD_AUTOTUNE=1 HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES=3", "does not tune itself"},
      {"--autotune --autotune-gaussian-process-noise 1", "autotune: {enabled: true, gaussian_process_noise: 1}",
       "HOROVOD_AUTOTUNE=1 HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE=1.0", "does not tune itself"},
      {"--autotune-warmup-samples 1", "", "", "--autotune-warmup-samples: means nothing without --autotune; ignored"},
      {"--timeline-filename f", "timeline: {filename: f}", "HOROVOD_TIMELINE=f", "does not record a timeline"},
      {"--timeline-filename f --timeline-mark-cycles", "timeline: {filename: f, mark_cycles: true}",
       "HOROVOD_TIMELINE=f HOROVOD_TIMELINE_MARK_CYCLES=1", "does not record a timeline"},
      {"--timeline-filename f --no-timeline-mark-cycles", "timeline: {filename: f, mark_cycles: false}",
       "HOROVOD_TIMELINE=f HOROVOD_TIMELINE_MARK_CYCLES=0", "does not record a timeline"},
      {"--timeline-mark-cycles", "timeline: {mark_cycles: true}", "",
       "means nothing without --timeline-filename; ignored"},
      {"--no-stall-check", "stall_check: {enabled: false}", "HOROVOD_STALL_CHECK_DISABLE=1", ""},
      {"--stall-check", "stall_check: {enabled: true}", "HOROVOD_STALL_CHECK_DISABLE=0", ""},
      {"--stall-check --stall-check-warning-time-seconds 9", "stall_check: {warning_time_seconds: 9}",
       "HOROVOD_STALL_CHECK_DISABLE=0 HOROVOD_STALL_CHECK_TIME_SECONDS=9", ""},
      {"--stall-check --stall-check-shutdown-time-seconds 9", "stall_check: {shutdown_time_seconds: 9}",
       "HOROVOD_STALL_CHECK_DISABLE=0 HOROVOD_STALL_SHUTDOWN_TIME_SECONDS=9", ""},
      {"--mpi-threads-disable", "library_options: {mpi_threads_disable: true}", "HOROVOD_MPI_THREADS_DISABLE=1",
       "no MPI"},
      {"--no-mpi-threads-disable", "library_options: {mpi_threads_disable: false}", "HOROVOD_MPI_THREADS_DISABLE=0",
       ""},
      {"--num-nccl-streams 2", "library_options: {num_nccl_streams: 2}", "HOROVOD_NUM_NCCL_STREAMS=2", "NCCL"},
      {"--thread-affinity 3", "library_options: {thread_affinity: 3}", "HOROVOD_THREAD_AFFINITY=3", "pin"},
      {"--gloo-timeout-seconds 60", "library_options: {gloo_timeout_seconds: 60}", "HOROVOD_GLOO_TIMEOUT_SECONDS=60",
       ""},
      {"--log-level DEBUG", "logging: {level: DEBUG}", "HOROVOD_LOG_LEVEL=DEBUG", "log levels"},
      {"--log-level info", "logging: {level: info}", "HOROVOD_LOG_LEVEL=INFO", "log levels"},
      {"--log-with-timestamp", "logging: {with_timestamp: true}", "HOROVOD_LOG_HIDE_TIME=0", "log levels"},
      {"--log-without-timestamp", "logging: {with_timestamp: false}", "HOROVOD_LOG_HIDE_TIME=1", "log levels"},
      {"--log-hide-timestamp", "", "HOROVOD_LOG_HIDE_TIME=1", "the old name of --log-without-timestamp"},
      {"--no-log-hide-timestamp", "", "HOROVOD_LOG_HIDE_TIME=0", "the old name of --log-with-timestamp"},
      {"--tcp", "", "NCCL_IB_DISABLE=1", ""},
      {"--mpi-args=-x", "", "", "--mpi-args: there is no mpirun here; ignored"},
      {"--binding-args=-b", "", "", "--binding-args: there is no mpirun here; ignored"},
      {"--gloo", "controller: gloo", "", ""},
      {"--mpi", "controller: mpi", "", "there is no mpirun here; the job starts over ssh all the same"},
      {"--jsrun", "", "", "--jsrun: there is no jsrun here"},
      {"--disable-cache", "", "", "nothing is kept from earlier checks"},
      {"--max-np 4", "", "", "--max-np: means nothing without --min-np or --host-discovery-script"},
      {"--reset-limit 4", "", "", "--reset-limit: means nothing without"},
      {"--format json", "", "", "--format: means nothing without --dry-run"},
  };
  return *kCases;
}

TEST(Options, ComeToVariablesAndNotes) {
  for (const VariableCase& c : VariableCases()) {
    std::vector<CommandLine> forms = {Parse(Full(c.option))};
    if (!c.config.empty()) forms.push_back(Parse(Full("--config-file c"), {{"c", c.config}}));
    for (const CommandLine& form : forms) {
      SCOPED_TRACE(absl::StrCat(c.option, &form == &forms[0] ? "" : " from the file"));
      const LaunchRequest request = Request(form);
      EXPECT_EQ(absl::StrJoin(request.worker_variables, " "), c.variable);
      const std::string notes = absl::StrJoin(request.notes, "\n");
      EXPECT_THAT(notes, HasSubstr(c.note));
      EXPECT_EQ(notes.empty(), c.note.empty()) << notes;
    }
  }
}

TEST(Options, OfTheCommandLineWinOverTheFileWhereverTheyStand) {
  const Files files = {{"c", "params: {cycle_time_ms: 5, cache_capacity: 6}\nautotune: {enabled: true}\n"}};
  for (const char* text :
       {"--config-file c --cycle-time-ms 20 --no-autotune", "--no-autotune --cycle-time-ms 20 --config-file c"}) {
    EXPECT_THAT(Request(Parse(Full(text), files)).worker_variables,
                ElementsAre("HOROVOD_CYCLE_TIME=20.0", "HOROVOD_CACHE_CAPACITY=6", "HOROVOD_AUTOTUNE=0"));
  }
}

TEST(Options, SetFieldsOfTheRequest) {
  const LaunchRequest plain = Request(Parse(Full("")));
  EXPECT_THAT(plain.notes, IsEmpty());
  EXPECT_FALSE(plain.elastic || plain.dry_run || plain.grace || plain.start_timeout || plain.port_range);
  EXPECT_TRUE(plain.networks.empty());

  const LaunchRequest r = Request(Parse(Full(
      "-H a:1,b:1 --start-timeout 90 --grace 2.5 --dry-run --format=json -p 2222 -i key --ssh-backend openssh "
      "--ssh-accept-new-host-keys --network-interface eth0 --network-interfaces ib0,b=10.0.0.0/8 --port-range "
      "9000-9100 "
      "--env X=1 --env Y=2 --env-deny A* --env-deny B --output-filename d1 --output-dir d2 --output-prefix {host}| "
      "-prefix-timestamp --verbose")));
  EXPECT_EQ(r.start_timeout, absl::Seconds(90));
  EXPECT_EQ(r.grace, absl::Milliseconds(2500));
  EXPECT_EQ(r.dry_run, PlanFormat::kJson);
  EXPECT_EQ(r.ssh.port, 2222);
  EXPECT_EQ(r.ssh.identity_file, "key");
  EXPECT_EQ(r.ssh.backend, SshOptions::Backend::kOpenssh);
  EXPECT_TRUE(r.ssh.accept_new_host_keys);
  ASSERT_EQ(r.networks.rules.size(), 3u);
  EXPECT_EQ(r.networks.rules[1].wanted, "ib0");
  EXPECT_EQ(r.networks.rules[2].host, "b");
  EXPECT_EQ(r.port_range, (PortRange{9000, 9100}));
  EXPECT_THAT(r.given_variables, ElementsAre("X=1", "Y=2"));
  EXPECT_THAT(r.denied_variables, ElementsAre("A*", "B"));
  EXPECT_EQ(r.output_directory, "d1");
  EXPECT_EQ(r.instance_directory, "d2");
  EXPECT_EQ(r.output_prefix.text(), "{host}|");
  EXPECT_TRUE(r.timestamps);
  EXPECT_TRUE(r.verbose);
  EXPECT_THAT(r.notes, IsEmpty());
  EXPECT_EQ(Request(Parse(Full("--dry-run"))).dry_run, PlanFormat::kText);
}

TEST(Options, OfElasticJobs) {
  const LaunchRequest r =
      Request(Parse(Full("--min-num-proc 1 --max-num-proc 4 -H a:2,b:2 --slots-per-host 3 "
                         "--elastic-timeout 60 --reset-limit 5 --blacklist-cooldown-range 10 100")));
  ASSERT_TRUE(r.elastic.has_value());
  EXPECT_EQ(r.elastic->min_np, 1);
  EXPECT_EQ(r.elastic->max_np, 4);
  EXPECT_EQ(r.elastic->slots_per_host, 3);
  EXPECT_EQ(r.elastic->timeout, absl::Seconds(60));
  EXPECT_EQ(r.elastic->reset_limit, 5);
  ASSERT_TRUE(r.elastic->cooldown.has_value());
  EXPECT_EQ(r.elastic->cooldown->least, absl::Seconds(10));
  EXPECT_EQ(r.elastic->cooldown->most, absl::Seconds(100));
  EXPECT_EQ(r.elastic->discovery_script, "");

  const LaunchRequest s = Request(Parse(Full("--host-discovery-script ./d"), {}, {{"HOROVOD_ELASTIC_TIMEOUT", "7"}}));
  ASSERT_TRUE(s.elastic.has_value());
  EXPECT_EQ(s.elastic->min_np, 2);
  EXPECT_EQ(s.elastic->timeout, absl::Seconds(7));
  EXPECT_EQ(s.elastic->discovery_script, "./d");
  EXPECT_THAT(s.hosts, IsEmpty());
}

TEST(Options, AVariableOfTheEnvironmentIsTheWeakest) {
  const std::map<std::string, std::string> environment = {{"HOROVOD_START_TIMEOUT", "7"}};
  EXPECT_EQ(Request(Parse(Full(""), {}, environment)).start_timeout, absl::Seconds(7));
  EXPECT_EQ(Request(Parse(Full("--start-timeout 8"), {}, environment)).start_timeout, absl::Seconds(8));
  EXPECT_THAT(Request(Parse(Full(""), {}, environment)).settings,
              ::testing::Contains(
                  LaunchRequest::ResolvedSetting{"--start-timeout", "7", "the variable HOROVOD_START_TIMEOUT"}));
}

TEST(Options, ValuesOfEnvAreInNoSetting) {
  for (const auto& setting : Request(Parse(Full("--env X=secret --verbose"))).settings)
    EXPECT_NE(setting.option, "--env");
}

TEST(Options, TellOfAnLsfJobWhoseHostsAreNotTaken) {
  EXPECT_THAT(Request(Parse(Full(""), {}, {{"LSB_JOBID", "1"}})).notes, ElementsAre(HasSubstr("a job of LSF")));
  EXPECT_THAT(Request(Parse(Full("-H a:2"), {}, {{"LSB_JOBID", "1"}})).notes, IsEmpty());
}

TEST(Options, BadValuesNameTheOptionAndTheValue) {
  const std::pair<std::string, std::string> kCases[] = {
      {"--fusion-threshold-mb -1", "--fusion-threshold-mb -1: must be at least 0"},
      {"--fusion-threshold-mb 1.5", "--fusion-threshold-mb \"1.5\" is not a whole number"},
      {"--cycle-time-ms x", "--cycle-time-ms \"x\" is not a number"},
      {"--cycle-time-ms -0.1", "--cycle-time-ms -0.1: must be at least 0"},
      {"--cache-capacity -1", "--cache-capacity -1: must be at least 0"},
      {"--num-nccl-streams 99999999999", "--num-nccl-streams 99999999999: more than 2147483647"},
      {"--autotune --autotune-gaussian-process-noise 1.1", "--autotune-gaussian-process-noise 1.1: more than 1"},
      {"--autotune-gaussian-process-noise -1", "--autotune-gaussian-process-noise -1: must be at least 0"},
      {"--log-level LOUD", "--log-level \"LOUD\" is not one of TRACE, DEBUG, INFO, WARNING, ERROR, FATAL"},
      {"--start-timeout 0", "--start-timeout 0: must be at least 1"},
      {"--grace soon", "--grace \"soon\" is not a number"},
      {"--grace -1", "--grace -1: must be at least 0"},
      {"-p 70000", "-p 70000: more than 65535"},
      {"-p22x", "-p \"22x\" is not a whole number"},
      {"--ssh-backend putty", "--ssh-backend \"putty\" is not one of libssh, openssh"},
      {"--format xml", "--format \"xml\" is not one of text, json"},
      {"--port-range 9000", "--port-range \"9000\": not a range of ports; write 9000-9100, with 1 to 65535"},
      {"--port-range 0-70000", "--port-range \"0-70000\": not a range of ports; write 9000-9100, with 1 to 65535"},
      {"--port-range 9-8", "--port-range \"9-8\": ends before it begins; write 8-9"},
      {"--network-interface c=eth0 -H a:2",
       "--network-interface \"c=eth0\": this host is not in the list of hosts: a:2"},
      {"--network-interface a/b",
       "--network-interface \"a/b\": not a range of addresses; write eth0, 10.0.0.0/8, fd00::/8 or "
       "HOST=eth0, with commas between"},
      {"--output-prefix {rnak}", "--output-prefix \"{rnak}\": there is no field \"{rnak}\"; did you mean {rank}?"},
      {"--env NOWHERE", "--env \"NOWHERE\": there is no such variable here; write NAME=VALUE, or export it first"},
      {"--min-np 3", "--min-np 3: more than -np 2, with which the job starts"},
      {"--min-np 0", "--min-np 0: must be at least 1"},
      {"--min-np 1 --max-np 1 -H a:2", "--max-np 1: less than -np 2, with which the job starts"},
      {"--min-np 1",
       "an elastic job needs hosts: --host-discovery-script FILE prints those there are, -H or --hostfile "
       "names them"},
      {"--slots-per-host 0", "--slots-per-host 0: must be at least 1"},
      {"--elastic-timeout x", "--elastic-timeout \"x\" is not a whole number"},
      {"--reset-limit -1", "--reset-limit -1: must be at least 0"},
      {"--blacklist-cooldown-range 0 5", "--blacklist-cooldown-range 0: must be at least 1"},
      {"--blacklist-cooldown-range 1 3601", "--blacklist-cooldown-range 3601: more than 3600"},
      {"--blacklist-cooldown-range 9 5", "--blacklist-cooldown-range 9 5: the first is more than the second"},
      {"-H a:2 --host-discovery-script d",
       "-H and --host-discovery-script are two answers to one question; give one of them"},
      {"--hostfile f --host-discovery-script d",
       "-hostfile and --host-discovery-script are two answers to one question; give one of them"},
      {"--gloo --mpi", "--gloo and --mpi contradict each other; give one of them"},
      {"--autotune --no-autotune", "--autotune and --no-autotune contradict each other; give one of them"},
      {"--stall-check --no-stall-check", "--stall-check and --no-stall-check contradict each other; give one of them"},
      {"--log-with-timestamp --log-hide-timestamp",
       "--log-with-timestamp and --log-hide-timestamp contradict each other; give one of them"},
  };
  for (const auto& [text, message] : kCases) EXPECT_EQ(Error(Parse(Full(text))), "horovodrun: " + message) << text;
}

TEST(Options, BadValuesOfTheFileAndTheEnvironmentNameTheirPlace) {
  EXPECT_EQ(Error(Parse(Full("--config-file c"), {{"c", "\nparams:\n  cycle_time_ms: fast\n"}})),
            "horovodrun: c, line 3: params.cycle_time_ms \"fast\" is not a number");
  EXPECT_EQ(Error(Parse(Full(""), {}, {{"HOROVOD_START_TIMEOUT", "soon"}})),
            "horovodrun: the variable HOROVOD_START_TIMEOUT \"soon\" is not a whole number");
  EXPECT_EQ(Request(Parse(Full(""), {}, {{"HOROVOD_START_TIMEOUT", ""}})).start_timeout, absl::nullopt);
}

// Nothing is parsed and then forgotten: each option is in one of the tables above or known to be tested elsewhere.
TEST(Options, EachHasATest) {
  std::set<std::string> tested = {"--num-proc",
                                  "--hosts",
                                  "--hostfile",
                                  "--config-file",
                                  "--check-build",
                                  "--version",
                                  "--help",
                                  "--start-timeout",
                                  "--grace",
                                  "--dry-run",
                                  "--verbose",
                                  "--network-interface",
                                  "--network-interfaces",
                                  "--port-range",
                                  "--ssh-port",
                                  "--ssh-identity-file",
                                  "--ssh-backend",
                                  "--ssh-accept-new-host-keys",
                                  "--env",
                                  "--env-deny",
                                  "--output-filename",
                                  "--output-dir",
                                  "--output-prefix",
                                  "--prefix-output-with-timestamp",
                                  "--min-num-proc",
                                  "--max-num-proc",
                                  "--slots-per-host",
                                  "--host-discovery-script",
                                  "--elastic-timeout",
                                  "--blacklist-cooldown-range"};
  for (const VariableCase& c : VariableCases()) {
    for (const std::string& word : Full(c.option)) tested.insert(word.substr(0, word.find('=')));
  }
  for (const OptionSpec& option : AllOptions()) {
    EXPECT_EQ(tested.count(std::string(option.Canonical())), 1u) << option.Canonical();
  }
}

}  // namespace
}  // namespace farandole
