// Compares what the messages and services of proto/v1 are with descriptors.golden.txt, where one line describes one
// thing, and says of each difference whether programs of before and after still understand each other. After a change
// that is meant:
//
//   FARANDOLE_UPDATE_GOLDEN=1 bazel run //proto/v1:descriptor_test

#include "google/protobuf/descriptor.h"

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/v1/agent_service.pb.h"
#include "proto/v1/bootstrap.pb.h"
#include "proto/v1/types.pb.h"
#include "proto/v1/worker_service.pb.h"

namespace farandole {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
namespace pb = ::google::protobuf;

constexpr char kGolden[] = "proto/v1/descriptors.golden.txt";

// What is described ("message farandole.v1.End field 1") -> how ("string reason").
using Things = std::map<std::string, std::string>;

std::string Type(const pb::FieldDescriptor& field) {
  if (field.message_type() != nullptr) return field.message_type()->full_name();
  if (field.enum_type() != nullptr) return field.enum_type()->full_name();
  return field.type_name();
}

// Field numbers in three digits, so that the order of the text is theirs.
std::string Number(int number) {
  const std::string digits = absl::StrCat(number);
  return std::string(digits.size() < 3 ? 3 - digits.size() : 0, '0') + digits;
}

void Describe(const pb::EnumDescriptor& type, Things* things) {
  for (int i = 0; i < type.value_count(); ++i) {
    (*things)[absl::StrCat("enum ", type.full_name(), " value ", Number(type.value(i)->number()))] =
        type.value(i)->name();
  }
}

void Describe(const pb::Descriptor& type, Things* things) {
  const std::string name = absl::StrCat("message ", type.full_name());
  (*things)[name] = "";
  for (int i = 0; i < type.field_count(); ++i) {
    const pb::FieldDescriptor& field = *type.field(i);
    const pb::OneofDescriptor* oneof = field.containing_oneof();
    (*things)[absl::StrCat(name, " field ", Number(field.number()))] =
        absl::StrCat(field.is_repeated() ? "repeated " : "", Type(field), " ", field.name(),
                     oneof == nullptr ? "" : absl::StrCat(" in oneof ", oneof->name()));
  }
  for (int i = 0; i < type.nested_type_count(); ++i) Describe(*type.nested_type(i), things);
  for (int i = 0; i < type.enum_type_count(); ++i) Describe(*type.enum_type(i), things);
}

void Describe(const pb::ServiceDescriptor& service, Things* things) {
  for (int i = 0; i < service.method_count(); ++i) {
    const pb::MethodDescriptor& method = *service.method(i);
    (*things)[absl::StrCat("service ", service.full_name(), " rpc ", method.name())] =
        absl::StrCat(method.client_streaming() ? "stream " : "", method.input_type()->full_name(), " returns ",
                     method.server_streaming() ? "stream " : "", method.output_type()->full_name());
  }
}

Things DescribeAll() {
  Things things;
  for (const pb::FileDescriptor* file :
       {v1::AgentMessage::descriptor()->file(), v1::AgentBootstrap::descriptor()->file(),
        v1::WorkerId::descriptor()->file(), v1::JoinRequest::descriptor()->file()}) {
    for (int i = 0; i < file->message_type_count(); ++i) Describe(*file->message_type(i), &things);
    for (int i = 0; i < file->enum_type_count(); ++i) Describe(*file->enum_type(i), &things);
    for (int i = 0; i < file->service_count(); ++i) Describe(*file->service(i), &things);
  }
  return things;
}

std::string Print(const Things& things) {
  std::string text;
  for (const auto& [what, how] : things) absl::StrAppend(&text, what, how.empty() ? "" : ": ", how, "\n");
  return text;
}

Things Parse(const std::string& text) {
  Things things;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(line, absl::MaxSplits(": ", 1));
    things[parts.first] = parts.second;
  }
  return things;
}

std::vector<std::string> Differences(const Things& before, const Things& now) {
  std::vector<std::string> differences;
  for (const auto& [what, how] : before) {
    const auto it = now.find(what);
    if (it == now.end()) {
      differences.push_back(absl::StrCat("INCOMPATIBLE: ", what, " (", how, ") is gone"));
    } else if (it->second != how) {
      differences.push_back(absl::StrCat("INCOMPATIBLE: ", what, " was (", how, ") and is (", it->second, ")"));
    }
  }
  for (const auto& [what, how] : now) {
    if (before.count(what) == 0) differences.push_back(absl::StrCat("addition: ", what, " (", how, ")"));
  }
  return differences;
}

TEST(Descriptors, AreThoseOfTheGoldenFile) {
  const Things now = DescribeAll();
  if (std::getenv("FARANDOLE_UPDATE_GOLDEN") != nullptr) {
    const char* root = std::getenv("BUILD_WORKSPACE_DIRECTORY");
    ASSERT_NE(root, nullptr) << "run this with `bazel run`";
    std::ofstream out(absl::StrCat(root, "/", kGolden));
    out << Print(now);
    ASSERT_TRUE(out.flush().good());
    return;
  }
  std::ifstream in(kGolden);
  ASSERT_TRUE(in.good()) << kGolden;
  std::stringstream text;
  text << in.rdbuf();
  EXPECT_THAT(Differences(Parse(text.str()), now), IsEmpty())
      << "Within v1 there are only additions. If this change is meant:\n"
         "  FARANDOLE_UPDATE_GOLDEN=1 bazel run //proto/v1:descriptor_test";
}

TEST(Descriptors, TheTextHoldsAllThatIsDescribed) {
  const Things now = DescribeAll();
  EXPECT_EQ(Parse(Print(now)), now);
  EXPECT_EQ(now.at("message farandole.v1.Output field 002"), "farandole.v1.Output.Stream stream");
  EXPECT_EQ(now.at("message farandole.v1.Spawn field 003"), "repeated bytes arguments");
  EXPECT_EQ(now.at("message farandole.v1.ExitStatus field 001"), "uint32 code in oneof how");
  EXPECT_EQ(now.at("enum farandole.v1.Output.Stream value 001"), "STDOUT");
  EXPECT_EQ(now.at("service farandole.v1.WorkerService rpc WatchAssignments"),
            "farandole.v1.WatchAssignmentsRequest returns stream farandole.v1.Assignment");
}

TEST(Descriptors, TellWhatBreaksOthersFromWhatDoesNot) {
  const Things before = {{"message A field 001", "string x"}, {"message A field 002", "bytes y"}};
  EXPECT_THAT(Differences(before, before), IsEmpty());
  EXPECT_THAT(
      Differences(before, {{"message A field 001", "string x"}, {"message A field 003", "bytes y"}}),
      ElementsAre("INCOMPATIBLE: message A field 002 (bytes y) is gone", "addition: message A field 003 (bytes y)"));
  EXPECT_THAT(Differences(before, {{"message A field 001", "uint32 x"}, {"message A field 002", "bytes y"}}),
              ElementsAre("INCOMPATIBLE: message A field 001 was (string x) and is (uint32 x)"));
}

}  // namespace
}  // namespace farandole
