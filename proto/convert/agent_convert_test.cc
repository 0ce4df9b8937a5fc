#include "proto/convert/agent_convert.h"

#include <functional>
#include <string>
#include <variant>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::StatusIs;
using ::testing::ElementsAre;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
const WorkerId kWorker{SlotId{"a", 2}, Incarnation(5)};

void Fill(v1::WorkerId* worker) {
  worker->set_host("a");
  worker->set_slot(2);
  worker->set_incarnation(5);
}

v1::DriverMessage Spawn() {
  v1::DriverMessage proto;
  v1::Spawn* spawn = proto.mutable_spawn();
  Fill(spawn->mutable_worker());
  spawn->mutable_placement()->set_size(1);
  spawn->mutable_placement()->set_local_size(1);
  spawn->mutable_placement()->set_cross_size(1);
  spawn->add_arguments("prog");
  spawn->add_arguments("\xff '\"");
  spawn->add_environment("A=\xfe=b");
  spawn->set_working_directory("/w\xfd");
  spawn->add_data_addresses("10.0.0.1");
  spawn->add_data_addresses("fd00::1");
  return proto;
}

v1::DriverMessage Welcome() {
  v1::DriverMessage proto;
  proto.mutable_welcome()->set_protocol(1);
  proto.mutable_welcome()->mutable_heartbeat_interval()->set_nanos(250'000'000);
  proto.mutable_welcome()->set_output_credit(65536);
  return proto;
}

v1::DriverMessage OpenRelayTo(uint64_t relay, const std::string& address, uint32_t port) {
  v1::DriverMessage proto;
  proto.mutable_open_relay()->set_relay(relay);
  proto.mutable_open_relay()->set_address(address);
  proto.mutable_open_relay()->set_port(port);
  return proto;
}

TEST(AgentConvert, ReadsAWelcome) {
  ASSERT_OK_AND_ASSIGN(const AgentCommand command, FromProto(Welcome()));
  const auto& welcome = std::get<Welcomed>(command);
  EXPECT_EQ(welcome.protocol, 1);
  EXPECT_EQ(welcome.heartbeat_interval, absl::Milliseconds(250));
  EXPECT_EQ(welcome.output_credit, 65536);
}

TEST(AgentConvert, KeepsEveryByteOfAProgram) {
  ASSERT_OK_AND_ASSIGN(const AgentCommand command, FromProto(Spawn()));
  const auto& spawn = std::get<SpawnProgram>(command);
  EXPECT_EQ(spawn.worker, kWorker);
  EXPECT_EQ(spawn.placement.size, 1);
  EXPECT_THAT(spawn.arguments, ElementsAre("prog", "\xff '\""));
  EXPECT_THAT(spawn.environment, ElementsAre("A=\xfe=b"));
  EXPECT_EQ(spawn.working_directory, "/w\xfd");
  EXPECT_THAT(spawn.data_addresses, ElementsAre("10.0.0.1", "fd00::1"));
  EXPECT_FALSE(spawn.has_input);
  EXPECT_FALSE(spawn.wants_result);
}

TEST(AgentConvert, ReadsWhatAFunctionNeeds) {
  v1::DriverMessage proto = Spawn();
  proto.mutable_spawn()->set_has_input(true);
  ASSERT_OK_AND_ASSIGN(AgentCommand command, FromProto(proto));
  EXPECT_TRUE(std::get<SpawnProgram>(command).has_input);
  EXPECT_FALSE(std::get<SpawnProgram>(command).wants_result);
  proto.mutable_spawn()->set_has_input(false);
  proto.mutable_spawn()->set_wants_result(true);
  ASSERT_OK_AND_ASSIGN(command, FromProto(proto));
  EXPECT_FALSE(std::get<SpawnProgram>(command).has_input);
  EXPECT_TRUE(std::get<SpawnProgram>(command).wants_result);

  proto.mutable_input()->set_data(std::string(256 << 10, '\xff'));
  ASSERT_OK_AND_ASSIGN(command, FromProto(proto));
  EXPECT_EQ(std::get<TakeInput>(command).piece, std::string(256 << 10, '\xff'));
  proto.mutable_input()->mutable_data()->push_back('x');
  EXPECT_THAT(FromProto(proto), StatusIs(kInvalid, "input: data has 262145 bytes, more than 262144"));
  proto.mutable_input()->clear_data();
  EXPECT_THAT(FromProto(proto), StatusIs(kInvalid, "input: data is empty"));
}

TEST(AgentConvert, ReadsTheOtherCommands) {
  v1::DriverMessage proto;
  Fill(proto.mutable_signal()->mutable_worker());
  proto.mutable_signal()->set_signal(15);
  ASSERT_OK_AND_ASSIGN(AgentCommand command, FromProto(proto));
  EXPECT_EQ(std::get<SendSignal>(command).worker, kWorker);
  EXPECT_EQ(std::get<SendSignal>(command).signal, 15);

  proto.mutable_output_credit()->set_bytes(10);
  ASSERT_OK_AND_ASSIGN(command, FromProto(proto));
  EXPECT_EQ(std::get<GrantOutput>(command).bytes, 10);

  proto.mutable_end()->set_reason("all is done");
  ASSERT_OK_AND_ASSIGN(command, FromProto(proto));
  EXPECT_EQ(std::get<EndAll>(command).reason, "all is done");

  proto.mutable_open_relay()->set_relay(9);
  proto.mutable_open_relay()->set_address("fd00::1");
  proto.mutable_open_relay()->set_port(22);
  ASSERT_OK_AND_ASSIGN(command, FromProto(proto));
  EXPECT_EQ(std::get<OpenRelay>(command).relay, 9u);
  EXPECT_EQ(std::get<OpenRelay>(command).address, "fd00::1");
  EXPECT_EQ(std::get<OpenRelay>(command).port, 22);

  v1::Assignment* assignment = proto.mutable_assignment();
  assignment->set_generation(3);
  v1::Member* member = assignment->add_members();
  Fill(member->mutable_worker());
  *member->mutable_placement() = Spawn().spawn().placement();
  member->set_endpoint("127.0.0.1:5");
  ASSERT_OK_AND_ASSIGN(command, FromProto(proto));
  EXPECT_EQ(std::get<AdoptAssignment>(command).generation, Generation(3));
  EXPECT_EQ(std::get<AdoptAssignment>(command).members.at(0).worker, kWorker);
}

TEST(AgentConvert, NamesTheFieldThatIsWrong) {
  const auto wrong = [](v1::DriverMessage proto, const std::function<void(v1::DriverMessage*)>& change) {
    change(&proto);
    return FromProto(proto);
  };
  EXPECT_THAT(FromProto(v1::DriverMessage()), StatusIs(kInvalid));
  EXPECT_THAT(wrong(Welcome(), [](auto* proto) { proto->mutable_welcome()->clear_protocol(); }),
              StatusIs(kInvalid, "welcome: protocol 0 is no revision"));
  EXPECT_THAT(wrong(Welcome(), [](auto* proto) { proto->mutable_welcome()->clear_heartbeat_interval(); }),
              StatusIs(kInvalid, ::testing::StartsWith("welcome: heartbeat_interval: 0 is not between")));
  EXPECT_THAT(wrong(Welcome(), [](auto* proto) { proto->mutable_welcome()->clear_output_credit(); }),
              StatusIs(kInvalid, "welcome: output_credit: bytes of output 0 is not between 1 and 2^62"));
  EXPECT_THAT(wrong(Spawn(), [](auto* proto) { proto->mutable_spawn()->clear_worker(); }),
              StatusIs(kInvalid, "spawn: worker: host is empty"));
  EXPECT_THAT(wrong(Spawn(), [](auto* proto) { proto->mutable_spawn()->clear_placement(); }),
              StatusIs(kInvalid, "spawn: placement: rank has 0 places"));
  EXPECT_THAT(wrong(Spawn(), [](auto* proto) { proto->mutable_spawn()->clear_arguments(); }),
              StatusIs(kInvalid, "spawn: arguments is empty"));
  EXPECT_THAT(wrong(Spawn(), [](auto* proto) { proto->mutable_spawn()->set_arguments(1, std::string("a\0b", 3)); }),
              StatusIs(kInvalid, "spawn: arguments[1] has a zero byte in it"));
  EXPECT_THAT(wrong(Spawn(), [](auto* proto) { proto->mutable_spawn()->set_environment(0, "SECRET"); }),
              StatusIs(kInvalid, "spawn: environment[0] is not of the form NAME=VALUE"));
  EXPECT_THAT(wrong(Spawn(), [](auto* proto) { proto->mutable_spawn()->set_working_directory("w"); }),
              StatusIs(kInvalid, "spawn: working_directory \"w\" is not absolute"));
  EXPECT_THAT(wrong(Spawn(), [](auto* proto) { proto->mutable_spawn()->set_data_addresses(1, "eth0"); }),
              StatusIs(kInvalid, "spawn: data_addresses[1] \"eth0\" is no numeric address"));
  EXPECT_THAT(FromProto(OpenRelayTo(0, "10.0.0.1", 22)), StatusIs(kInvalid, "open_relay: relay is zero"));
  EXPECT_THAT(FromProto(OpenRelayTo(9, "host", 22)),
              StatusIs(kInvalid, "open_relay: address \"host\" is no numeric address"));
  EXPECT_THAT(FromProto(OpenRelayTo(9, "10.0.0.1", 0)), StatusIs(kInvalid, "open_relay: port 0 is no port"));
  EXPECT_THAT(FromProto(OpenRelayTo(9, "10.0.0.1", 65536)), StatusIs(kInvalid, "open_relay: port 65536 is no port"));
  v1::DriverMessage signal;
  Fill(signal.mutable_signal()->mutable_worker());
  signal.mutable_signal()->set_signal(65);
  EXPECT_THAT(FromProto(signal), StatusIs(kInvalid, "signal: signal 65 is no signal"));
  v1::DriverMessage assignment;
  assignment.mutable_assignment();
  EXPECT_THAT(FromProto(assignment), StatusIs(kInvalid, "assignment: generation is zero"));
}

TEST(AgentConvert, ReadsABootstrap) {
  v1::AgentBootstrap proto;
  proto.set_job("j");
  proto.set_host("a");
  proto.set_incarnation(9);
  proto.set_driver_address("unix-abstract:x");
  proto.set_job_key(std::string(32, '\xff'));
  proto.set_data_address("127.0.0.1");
  proto.mutable_grace()->set_seconds(5);
  ASSERT_OK_AND_ASSIGN(const Bootstrap bootstrap, FromProto(proto));
  EXPECT_EQ(bootstrap.job, "j");
  EXPECT_EQ(bootstrap.host, "a");
  EXPECT_EQ(bootstrap.incarnation, Incarnation(9));
  EXPECT_THAT(bootstrap.driver_addresses, ElementsAre("unix-abstract:x"));
  EXPECT_EQ(bootstrap.lost_after, absl::InfiniteDuration());
  EXPECT_EQ(bootstrap.job_key, std::string(32, '\xff'));
  EXPECT_EQ(bootstrap.data_address, "127.0.0.1");
  EXPECT_EQ(bootstrap.grace, absl::Seconds(5));

  proto.set_job_key("short");
  EXPECT_THAT(FromProto(proto), StatusIs(kInvalid, "job_key has 5 bytes"));
  proto.clear_data_address();
  proto.set_job_key(std::string(32, 'k'));
  EXPECT_THAT(FromProto(proto), StatusIs(kInvalid, "data_address is empty"));
}

TEST(AgentConvert, ReadsABootstrapFromElsewhere) {
  v1::AgentBootstrap proto;
  proto.set_job("j");
  proto.set_host("a");
  proto.set_incarnation(9);
  proto.set_driver_address("unix-abstract:x");
  proto.add_driver_addresses("10.0.0.1:5");
  proto.add_driver_addresses("[fd00::1]:6");
  proto.set_job_key(std::string(32, 'k'));
  proto.mutable_grace()->set_seconds(5);
  proto.mutable_lost_after()->set_seconds(3);
  EXPECT_THAT(FromProto(proto), StatusIs(kInvalid, "ca_certificate is empty"));
  proto.set_ca_certificate("CA");
  EXPECT_THAT(FromProto(proto), StatusIs(kInvalid, "certificate is empty"));
  proto.set_certificate("CERTIFICATE");
  EXPECT_THAT(FromProto(proto), StatusIs(kInvalid, "private_key is empty"));
  proto.set_private_key("KEY");
  proto.set_input_may_end(true);
  ASSERT_OK_AND_ASSIGN(const Bootstrap bootstrap, FromProto(proto));
  EXPECT_TRUE(bootstrap.input_may_end);
  EXPECT_THAT(bootstrap.driver_addresses, ElementsAre("10.0.0.1:5", "[fd00::1]:6"));
  EXPECT_EQ(bootstrap.ca_certificate, "CA");
  EXPECT_EQ(bootstrap.certificate, "CERTIFICATE");
  EXPECT_EQ(bootstrap.private_key, "KEY");
  EXPECT_EQ(bootstrap.lost_after, absl::Seconds(3));
  proto.add_driver_addresses("");
  EXPECT_THAT(FromProto(proto), StatusIs(kInvalid, "driver_addresses is empty, or an address in it"));
  proto.clear_driver_addresses();
  proto.clear_driver_address();
  EXPECT_THAT(FromProto(proto), StatusIs(kInvalid, "driver_addresses is empty, or an address in it"));
}

TEST(AgentConvert, WritesEveryReport) {
  v1::AgentMessage proto =
      ToProto(AgentReport(AgentRegistration{1, 2, "j", "a", Incarnation(5), "0.1", 77, {{"eth\xff", "10.0.0.1", 24}}}));
  ASSERT_EQ(proto.register_().addresses_size(), 1);
  EXPECT_EQ(proto.register_().addresses(0).interface(), "eth\xef\xbf\xbd");
  EXPECT_EQ(proto.register_().addresses(0).address(), "10.0.0.1");
  EXPECT_EQ(proto.register_().addresses(0).prefix_length(), 24u);
  EXPECT_EQ(proto.register_().protocol_min(), 1u);
  EXPECT_EQ(proto.register_().protocol_max(), 2u);
  EXPECT_EQ(proto.register_().job(), "j");
  EXPECT_EQ(proto.register_().host(), "a");
  EXPECT_EQ(proto.register_().incarnation(), 5u);
  EXPECT_EQ(proto.register_().version(), "0.1");
  EXPECT_EQ(proto.register_().pid(), 77u);
  EXPECT_TRUE(ToProto(AgentReport(AgentHeartbeat{})).has_heartbeat());
  proto = ToProto(AgentReport(WorkerStarted{kWorker, 12}));
  EXPECT_EQ(proto.worker_started().worker().incarnation(), 5u);
  EXPECT_EQ(proto.worker_started().pid(), 12u);
  proto = ToProto(AgentReport(WorkerStartFailed{kWorker, 2, "/x\xff"}));
  EXPECT_EQ(proto.worker_start_failed().error(), 2u);
  EXPECT_EQ(proto.worker_start_failed().what(), "/x\xef\xbf\xbd");
  proto = ToProto(AgentReport(WorkerJoined{kWorker, "h:1", Generation(4)}));
  EXPECT_EQ(proto.worker_joined().endpoint(), "h:1");
  EXPECT_EQ(proto.worker_joined().after_generation(), 4u);
  EXPECT_EQ(ToProto(AgentReport(WorkerLeft{kWorker, Generation(4)})).worker_left().generation(), 4u);
  proto = ToProto(AgentReport(WorkerExited{kWorker, ExitStatus{0, 9}}));
  EXPECT_EQ(proto.worker_exited().status().signal(), 9u);
  EXPECT_FALSE(proto.worker_exited().out_of_memory());
  EXPECT_TRUE(ToProto(AgentReport(WorkerExited{kWorker, ExitStatus{0, 9}, true})).worker_exited().out_of_memory());
  proto = ToProto(AgentReport(WorkerOutput{kWorker, WorkerOutput::Stream::kStderr, "\xff\n"}));
  EXPECT_EQ(proto.output().stream(), v1::Output::STDERR);
  EXPECT_EQ(proto.output().data(), "\xff\n");
  proto = ToProto(AgentReport(WorkerOutput{kWorker, WorkerOutput::Stream::kResult, "r"}));
  EXPECT_EQ(proto.output().stream(), v1::Output::RESULT);
  EXPECT_EQ(ToProto(AgentReport(WorkerOutputEnded{kWorker})).output_ended().worker().slot(), 2u);
  EXPECT_EQ(ToProto(AgentReport(AgentEndsItself{"it got SIGTERM"})).ending().reason(), "it got SIGTERM");
  proto = ToProto(AgentReport(WorkerSaid{kWorker, Generation(4), "lost"}));
  EXPECT_EQ(proto.worker_notice().generation(), 4u);
  EXPECT_EQ(proto.worker_notice().text(), "lost");
}

}  // namespace
}  // namespace farandole
