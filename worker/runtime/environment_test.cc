#include "worker/runtime/environment.h"

#include <map>
#include <string>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

absl::StatusOr<WorkerEnvironment> Read(const Variables& variables) {
  return ReadWorkerEnvironment([&](const char* name) -> const char* {
    const auto it = variables.find(name);
    return it == variables.end() ? nullptr : it->second.c_str();
  });
}

TEST(WorkerEnvironment, NothingSetIsAGroupOfOneWithTheDefaults) {
  for (const Variables& variables :
       {Variables{}, Variables{{"FARANDOLE_AGENT", ""}, {"HOROVOD_FUSION_THRESHOLD", ""}}}) {
    ASSERT_OK_AND_ASSIGN(const WorkerEnvironment environment, Read(variables));
    EXPECT_EQ(environment.agent, "");
    EXPECT_THAT(environment.data_addresses, ElementsAre("127.0.0.1"));
    EXPECT_TRUE(environment.ports.any());
    EXPECT_EQ(environment.transport, TransportChoice::kAuto);
    EXPECT_EQ(environment.engine.fusion_threshold_bytes, int64_t{128} << 20);
    EXPECT_EQ(environment.engine.stall_warning, absl::Seconds(60));
    EXPECT_EQ(environment.foreign_launcher, "");
  }
}

TEST(WorkerEnvironment, ReadsEveryVariable) {
  ASSERT_OK_AND_ASSIGN(const WorkerEnvironment environment,
                       Read({{"FARANDOLE_AGENT", "unix-abstract:x"},
                             {"FARANDOLE_WORKER", "00000000000000ff"},
                             {"FARANDOLE_DATA_ADDRESS", "::1, fe80::7%eth0,10.0.0.7"},
                             {"FARANDOLE_PORT_RANGE", "4000-4007"},
                             {"FARANDOLE_TRANSPORT", "tcp"},
                             {"HOROVOD_FUSION_THRESHOLD", "0"},
                             {"HOROVOD_STALL_CHECK_TIME_SECONDS", "2.5"}}));
  EXPECT_EQ(environment.agent, "unix-abstract:x");
  EXPECT_EQ(environment.incarnation, Incarnation(255));
  EXPECT_THAT(environment.data_addresses, ElementsAre("::1", "fe80::7%eth0", "10.0.0.7"));
  EXPECT_EQ(environment.ports, (PortRange{4000, 4007}));
  EXPECT_EQ(environment.transport, TransportChoice::kTcp);
  EXPECT_EQ(environment.engine.fusion_threshold_bytes, 0);
  EXPECT_EQ(environment.engine.stall_warning, absl::Seconds(2.5));
}

TEST(WorkerEnvironment, StallCheckCanBeTurnedOff) {
  ASSERT_OK_AND_ASSIGN(WorkerEnvironment environment,
                       Read({{"HOROVOD_STALL_CHECK_DISABLE", "1"}, {"HOROVOD_STALL_CHECK_TIME_SECONDS", "5"}}));
  EXPECT_EQ(environment.engine.stall_warning, absl::InfiniteDuration());
  ASSERT_OK_AND_ASSIGN(environment, Read({{"HOROVOD_STALL_CHECK_DISABLE", "0"}}));
  EXPECT_EQ(environment.engine.stall_warning, absl::Seconds(60));
}

TEST(WorkerEnvironment, AStallMayEndTheGroupButNotBeforeItWasToldOf) {
  ASSERT_OK_AND_ASSIGN(WorkerEnvironment environment, Read({{"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "90"}}));
  EXPECT_EQ(environment.engine.stall_shutdown, absl::Seconds(90));
  for (const char* never : {"0", "59"}) {
    ASSERT_OK_AND_ASSIGN(environment, Read({{"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", never}}));
    EXPECT_EQ(environment.engine.stall_shutdown, absl::InfiniteDuration()) << never;
  }
  ASSERT_OK_AND_ASSIGN(environment, Read({{"HOROVOD_DISABLE_GROUP_FUSION", "1"}}));
  EXPECT_TRUE(environment.engine.fuse_groups_apart);
}

TEST(WorkerEnvironment, ReadsEveryTransport) {
  for (const auto& [word, choice] :
       {std::pair{"auto", TransportChoice::kAuto}, {"shm", TransportChoice::kShm}, {"tcp", TransportChoice::kTcp}}) {
    ASSERT_OK_AND_ASSIGN(const WorkerEnvironment environment, Read({{"FARANDOLE_TRANSPORT", word}}));
    EXPECT_EQ(environment.transport, choice) << word;
  }
}

TEST(WorkerEnvironment, GarbageIsAnErrorThatNamesVariableAndValue) {
  for (const auto& [name, value] : {std::pair{"HOROVOD_FUSION_THRESHOLD", "64MB"},
                                    {"HOROVOD_FUSION_THRESHOLD", "-1"},
                                    {"HOROVOD_FUSION_THRESHOLD", "99999999999999999999"},
                                    {"HOROVOD_STALL_CHECK_TIME_SECONDS", "soon"},
                                    {"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "-1"},
                                    {"HOROVOD_DISABLE_GROUP_FUSION", "yes"},
                                    {"HOROVOD_STALL_CHECK_TIME_SECONDS", "0"},
                                    {"HOROVOD_STALL_CHECK_TIME_SECONDS", "nan"},
                                    {"HOROVOD_STALL_CHECK_DISABLE", "yes"},
                                    {"FARANDOLE_TRANSPORT", "rdma"},
                                    {"FARANDOLE_DATA_ADDRESS", "127.0.0.1,"},
                                    {"FARANDOLE_DATA_ADDRESS", " , "},
                                    {"FARANDOLE_PORT_RANGE", "4000"},
                                    {"FARANDOLE_PORT_RANGE", "0-10"},
                                    {"FARANDOLE_PORT_RANGE", "4001-4000"},
                                    {"FARANDOLE_PORT_RANGE", "1-65536"},
                                    {"FARANDOLE_PORT_RANGE", "1-2-3"}}) {
    EXPECT_THAT(Read({{name, value}}),
                StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr(name), HasSubstr(value))));
  }
}

TEST(WorkerEnvironment, AnAgentNeedsAWorker) {
  for (const char* value : {"", "0000000000000000", "12", "zzzzzzzzzzzzzzzz", "00000000000000012"}) {
    EXPECT_THAT(Read({{"FARANDOLE_AGENT", "unix-abstract:x"}, {"FARANDOLE_WORKER", value}}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("FARANDOLE_WORKER")));
  }
}

TEST(WorkerEnvironment, NoticesAForeignLauncherOnlyOutsideOfAJob) {
  ASSERT_OK_AND_ASSIGN(WorkerEnvironment environment, Read({{"OMPI_COMM_WORLD_SIZE", "4"}}));
  EXPECT_EQ(environment.foreign_launcher, "mpirun");
  ASSERT_OK_AND_ASSIGN(environment, Read({{"PMI_SIZE", "2"}}));
  EXPECT_EQ(environment.foreign_launcher, "mpiexec or srun");
  ASSERT_OK_AND_ASSIGN(environment, Read({{"OMPI_COMM_WORLD_SIZE", "1"}}));
  EXPECT_EQ(environment.foreign_launcher, "");
  ASSERT_OK_AND_ASSIGN(environment, Read({{"OMPI_COMM_WORLD_SIZE", "4"},
                                          {"FARANDOLE_AGENT", "unix-abstract:x"},
                                          {"FARANDOLE_WORKER", "00000000000000ff"}}));
  EXPECT_EQ(environment.foreign_launcher, "");
}

}  // namespace
}  // namespace farandole
