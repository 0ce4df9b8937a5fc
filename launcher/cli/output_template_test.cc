#include "launcher/cli/output_template.h"

#include <string>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::StatusIs;

std::string Expanded(absl::string_view text) {
  const absl::StatusOr<OutputTemplate> parsed = OutputTemplate::Parse(text);
  if (!parsed.ok()) return parsed.status().ToString();
  OutputTemplate::Fields fields;
  fields.rank = 12, fields.local_rank = 3, fields.generation = 7;
  fields.host = "gpu1", fields.stream = "stderr", fields.time = "now";
  return parsed->Expand(fields);
}

TEST(OutputTemplate, PutsEachFieldInItsPlace) {
  EXPECT_EQ(Expanded("{rank}{local_rank}{gen}"), "1237");
  EXPECT_EQ(Expanded("{host}/{local_rank} {stream} {time}| "), "gpu1/3 stderr now| ");
  EXPECT_EQ(Expanded("{{{rank}}} }}{{"), "{12} }{");
  EXPECT_EQ(Expanded(""), "");
  EXPECT_EQ(Expanded("plain \xff"), "plain \xff");
}

TEST(OutputTemplate, TheDefaultIsTheOriginals) {
  EXPECT_EQ(Expanded(OutputTemplate::kDefault), "[12]<stderr>:");
  EXPECT_EQ(*OutputTemplate::Parse("[{rank}]<{stream}>:"), OutputTemplate());
}

TEST(OutputTemplate, SaysWhetherItNeedsTheTime) {
  EXPECT_FALSE(OutputTemplate().uses_time());
  EXPECT_TRUE(OutputTemplate::Parse("{time}")->uses_time());
  EXPECT_FALSE(OutputTemplate::Parse("{{time}}")->uses_time());
}

TEST(OutputTemplate, CanBeGivenTheTime) {
  EXPECT_EQ(OutputTemplate().WithTime().text(), "{time}[{rank}]<{stream}>:");
  OutputTemplate::Fields fields;
  fields.stream = "stdout", fields.time = "now";
  EXPECT_EQ(OutputTemplate().WithTime().Expand(fields), "now[0]<stdout>:");
  EXPECT_EQ(OutputTemplate::Parse("a {time}")->WithTime().text(), "a {time}");
}

TEST(OutputTemplate, WhatCannotBeExpandedIsAnErrorWithAHint) {
  const std::pair<std::string, std::string> kCases[] = {
      {"{rnak}", "there is no field \"{rnak}\"; did you mean {rank}?"},
      {"{}", "there is no field \"{}\"; there are {rank} {local_rank} {host} {stream} {gen} {time}"},
      {"{rank", "a '{' alone; write it twice for a brace. Fields are {rank} {local_rank} {host} {stream} {gen} {time}"},
      {"a}", "a '}' alone; write it twice for a brace. Fields are {rank} {local_rank} {host} {stream} {gen} {time}"},
      {"a\nb", "a line break would make two lines of one"},
      {"a\rb", "a line break would make two lines of one"},
      {std::string(1001, 'x'), "longer than 1000 bytes"},
  };
  for (const auto& [text, message] : kCases) {
    EXPECT_THAT(OutputTemplate::Parse(text), StatusIs(absl::StatusCode::kInvalidArgument, message)) << text;
  }
}

}  // namespace
}  // namespace farandole
