#include "proto/convert/driver_convert.h"

#include <csignal>
#include <functional>
#include <string>
#include <variant>

#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

const AgentIdentity kAgent{"a", Incarnation(5)};
const WorkerId kWorker{SlotId{"a", 1}, Incarnation(7)};
constexpr char kWorkerText[] = "worker { host: 'a' slot: 1 incarnation: 7 }";

v1::AgentMessage Message(const std::string& text) {
  v1::AgentMessage message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

// `name { worker rest }`
v1::AgentMessage About(const std::string& name, const std::string& rest = "") {
  return Message(name + " { " + kWorkerText + " " + rest + " }");
}

template <typename T>
T EventOf(const v1::AgentMessage& message) {
  const absl::StatusOr<AgentWord> word = FromProto(message, kAgent);
  EXPECT_OK(word);
  if (!word.ok() || !std::holds_alternative<Event>(*word) || !std::holds_alternative<T>(std::get<Event>(*word))) {
    ADD_FAILURE() << "another event than expected";
    return T();
  }
  return std::get<T>(std::get<Event>(*word));
}

void ExpectWrong(const v1::AgentMessage& message, absl::string_view name, absl::string_view what) {
  EXPECT_THAT(FromProto(message, kAgent), StatusIs(absl::StatusCode::kInvalidArgument,
                                                   AllOf(HasSubstr(std::string(name)), HasSubstr(std::string(what)))))
      << message.ShortDebugString();
}

TEST(DriverConvert, Events) {
  EXPECT_EQ(EventOf<AgentHeard>(Message("heartbeat {}")).incarnation, kAgent.incarnation);
  const auto started = EventOf<WorkerStarted>(About("worker_started", "pid: 42"));
  EXPECT_EQ(started.worker, kWorker);
  EXPECT_EQ(started.pid, 42);
  const auto failed = EventOf<WorkerStartFailed>(About("worker_start_failed", "error: 2 what: '/x'"));
  EXPECT_EQ(failed.error, 2);
  EXPECT_EQ(failed.what, "/x");
  const auto joined = EventOf<WorkerJoined>(About("worker_joined", "endpoint: '[::1]:9' after_generation: 3"));
  EXPECT_EQ(joined.endpoint, "[::1]:9");
  EXPECT_EQ(joined.after, Generation(3));
  EXPECT_EQ(EventOf<WorkerLeft>(About("worker_left", "generation: 3")).generation, Generation(3));
  EXPECT_EQ(EventOf<WorkerExited>(About("worker_exited", "status { signal: 9 }")).status, (ExitStatus{0, SIGKILL}));
  EXPECT_FALSE(EventOf<WorkerExited>(About("worker_exited", "status { signal: 9 }")).out_of_memory);
  EXPECT_TRUE(EventOf<WorkerExited>(About("worker_exited", "status { signal: 9 } out_of_memory: true")).out_of_memory);
}

TEST(DriverConvert, OutputAndNotices) {
  ASSERT_OK_AND_ASSIGN(const AgentWord output, FromProto(About("output", "stream: STDERR data: '\\377\\n'"), kAgent));
  EXPECT_EQ(std::get<OutputPiece>(output).worker, kWorker);
  EXPECT_EQ(std::get<OutputPiece>(output).stream, OutputStream::kStderr);
  EXPECT_EQ(std::get<OutputPiece>(output).data, "\xff\n");
  ASSERT_OK_AND_ASSIGN(const AgentWord result, FromProto(About("output", "stream: RESULT data: 'r'"), kAgent));
  EXPECT_EQ(std::get<OutputPiece>(result).stream, OutputStream::kResult);
  ASSERT_OK_AND_ASSIGN(const AgentWord end, FromProto(About("output_ended"), kAgent));
  EXPECT_EQ(std::get<OutputEnd>(end).worker, kWorker);
  ASSERT_OK_AND_ASSIGN(const AgentWord notice, FromProto(About("worker_notice", "generation: 2 text: 't'"), kAgent));
  EXPECT_EQ(std::get<NoticeForPeople>(notice).text, "t");
}

TEST(DriverConvert, AnAgentThatEndsItself) {
  v1::AgentMessage message;
  message.mutable_ending()->set_reason("it got SIGTERM");
  ASSERT_OK_AND_ASSIGN(const AgentWord word, FromProto(message, kAgent));
  const Event event = std::get<Event>(word);
  EXPECT_EQ(std::get<AgentEnding>(event).reason, "it got SIGTERM");
  EXPECT_EQ(std::get<AgentEnding>(event).incarnation, kAgent.incarnation);
}

TEST(DriverConvert, WhatIsMalformedIsNamed) {
  ExpectWrong(Message(""), "message", "not set");
  ExpectWrong(Message("register { host: 'a' }"), "register", "once");
  ExpectWrong(Message("worker_left { generation: 1 }"), "worker_left", "host");
  ExpectWrong(Message("output_ended { worker { host: 'a' slot: 1 } }"), "output_ended", "incarnation");
  ExpectWrong(Message("output_ended { worker { host: 'b' slot: 1 incarnation: 7 } }"), "worker", "host b");
  ExpectWrong(About("worker_started"), "worker_started", "pid");
  ExpectWrong(About("worker_start_failed"), "worker_start_failed", "errno");
  ExpectWrong(About("worker_joined"), "worker_joined", "endpoint");
  ExpectWrong(About("worker_left"), "worker_left", "generation");
  ExpectWrong(About("worker_exited"), "worker_exited", "status");
  ExpectWrong(About("worker_exited", "status { code: 9 } out_of_memory: true"), "worker_exited", "out_of_memory");
  ExpectWrong(About("worker_exited", "status { code: 256 }"), "worker_exited", "code");
  ExpectWrong(About("output"), "output", "stream 0");
  ExpectWrong(About("output", "stream: 7"), "output", "stream 7");
}

TEST(DriverConvert, SizesAreBounded) {
  v1::AgentMessage output = About("output", "stream: STDOUT");
  output.mutable_output()->set_data(std::string(1 << 20, 'x'));
  EXPECT_OK(FromProto(output, kAgent));
  output.mutable_output()->mutable_data()->push_back('x');
  ExpectWrong(output, "data", "1048577 bytes");
  v1::AgentMessage joined = About("worker_joined");
  joined.mutable_worker_joined()->set_endpoint(std::string(3000, 'x'));
  ExpectWrong(joined, "endpoint", "3000 bytes");
}

TEST(DriverConvert, Hello) {
  const std::string good = "protocol_min: 1 protocol_max: 2 job: 'j' host: 'a' incarnation: 5 version: 'v' pid: 3";
  ASSERT_OK_AND_ASSIGN(const AgentHello hello, HelloFromProto(Message("register { " + good + " }")));
  EXPECT_EQ(hello.agent, kAgent);
  EXPECT_EQ(hello.job, "j");
  EXPECT_EQ(hello.protocol_max, 2);
  for (const char* bad : {"heartbeat {}", "register { protocol_min: 1 protocol_max: 1 job: 'j' host: 'a' }",
                          "register { protocol_min: 1 protocol_max: 1 job: 'j' incarnation: 5 }",
                          "register { protocol_min: 1 protocol_max: 1 host: 'a' incarnation: 5 }",
                          "register { protocol_min: 2 protocol_max: 1 job: 'j' host: 'a' incarnation: 5 }",
                          "register { protocol_max: 1 job: 'j' host: 'a' incarnation: 5 }"}) {
    EXPECT_THAT(HelloFromProto(Message(bad)), StatusIs(absl::StatusCode::kInvalidArgument)) << bad;
  }
}

TEST(DriverConvert, HelloWithAddresses) {
  const auto hello = [](const std::string& addresses) {
    return HelloFromProto(
        Message("register { protocol_min: 1 protocol_max: 1 job: 'j' host: 'a' incarnation: 5 " + addresses + " }"));
  };
  ASSERT_OK_AND_ASSIGN(const AgentHello two,
                       hello("addresses { interface: 'eth0' address: '10.0.0.1' prefix_length: 24 } "
                             "addresses { interface: 'lo' address: '::1' prefix_length: 128 }"));
  EXPECT_THAT(two.addresses,
              ::testing::ElementsAre(OfferedAddress{"eth0", "10.0.0.1", 24}, OfferedAddress{"lo", "::1", 128}));
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(hello("addresses { address: 'localhost' }"),
              StatusIs(kInvalid, "register: addresses[0]: address \"localhost\" is not numeric"));
  EXPECT_THAT(hello("addresses { address: '10.0.0.1' prefix_length: 33 }"),
              StatusIs(kInvalid, HasSubstr("prefix_length 33 is more than 32")));
  EXPECT_THAT(hello("addresses { address: '::1' prefix_length: 129 }"), StatusIs(kInvalid, HasSubstr("129")));
  EXPECT_THAT(hello("addresses { address: '::1' interface: '" + std::string(65, 'x') + "' }"),
              StatusIs(kInvalid, HasSubstr("interface has 65 bytes")));
  std::string many;
  for (int i = 0; i < 257; ++i) many += "addresses { address: '::1' } ";
  EXPECT_THAT(hello(many), StatusIs(kInvalid, HasSubstr("257 addresses")));
}

TEST(DriverConvert, Commands) {
  EXPECT_EQ(WelcomeToProto(absl::Milliseconds(250), 1000).ShortDebugString(),
            "welcome { protocol: 1 heartbeat_interval { nanos: 250000000 } output_credit: 1000 }");
  EXPECT_EQ(CreditToProto(5).ShortDebugString(), "output_credit { bytes: 5 }");
  EXPECT_EQ(OpenRelayToProto(9, "10.0.0.1", 22).ShortDebugString(),
            "open_relay { relay: 9 address: \"10.0.0.1\" port: 22 }");
  const Placement placement{1, 2, 0, 1, 1, 2};
  EXPECT_EQ(ToProto(SpawnWorker{kWorker, placement, "r"}, WorkerCommand{{"p", "\xff"}, {"A=b"}, "/d", {"10.0.0.1"}})
                .ShortDebugString(),
            "spawn { worker { host: \"a\" slot: 1 incarnation: 7 } "
            "placement { rank: 1 size: 2 local_size: 1 cross_rank: 1 cross_size: 2 } "
            "arguments: \"p\" arguments: \"\\377\" environment: \"A=b\" working_directory: \"/d\" data_addresses: "
            "\"10.0.0.1\" }");
  WorkerCommand with_result{{"p"}, {}, "/"};
  with_result.wants_result = true;
  const v1::DriverMessage function = ToProto(SpawnWorker{kWorker, placement, "r"}, with_result, /*has_input=*/true);
  EXPECT_TRUE(function.spawn().has_input());
  EXPECT_TRUE(function.spawn().wants_result());
  EXPECT_EQ(InputToProto("\xff").ShortDebugString(), "input { data: \"\\377\" }");
  EXPECT_EQ(ToProto(SignalWorker{kWorker, SIGTERM, "r"}).ShortDebugString(),
            "signal { worker { host: \"a\" slot: 1 incarnation: 7 } signal: 15 }");
  const v1::DriverMessage assignment = ToProto(SendAssignment{Generation(4), {{kWorker, placement, "e"}}, "r"});
  EXPECT_EQ(assignment.assignment().generation(), 4);
  EXPECT_EQ(assignment.assignment().members(0).endpoint(), "e");
  EXPECT_EQ(ToProto(EndAgent{"a", Incarnation(5), false, "r"}).ShortDebugString(), "end { reason: \"r\" }");
}

}  // namespace
}  // namespace farandole
