#include "launcher/cli/variables.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::IsOkAndHolds;
using ::farandole::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

absl::optional<std::string> Environment(const std::string& name) {
  if (name == "HERE") return "a=b\n\xff";
  return absl::nullopt;
}

absl::StatusOr<std::vector<std::string>> Given(std::vector<std::string> values) {
  std::vector<Setting> settings;
  for (std::string& value : values) settings.push_back({std::move(value), "--env"});
  return ParseGivenVariables(settings, Environment);
}

TEST(Variables, AreGivenOrTakenFromHere) {
  EXPECT_THAT(Given({"HERE", "X=1", "Y=", "Z=a=b", "X=2"}),
              IsOkAndHolds(ElementsAre("HERE=a=b\n\xff", "X=2", "Y=", "Z=a=b")));
  EXPECT_THAT(Given({}), IsOkAndHolds(ElementsAre()));
}

TEST(Variables, ErrorsNameThemAndNeverTheirValues) {
  EXPECT_THAT(Given({"NOWHERE"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "--env \"NOWHERE\": there is no such variable here; write NAME=VALUE, or export it first"));
  EXPECT_THAT(Given({"=secret"}),
              StatusIs(absl::StatusCode::kInvalidArgument, "--env: the name before '=' is missing"));
  EXPECT_THAT(Given({"HOROVOD_RANK=7"}), StatusIs(absl::StatusCode::kInvalidArgument,
                                                  "--env \"HOROVOD_RANK\": the launcher sets it for each process"));
  EXPECT_THAT(Given({"FARANDOLE_WORKER=secret"}),
              StatusIs(absl::StatusCode::kInvalidArgument, Not(HasSubstr("secret"))));
}

TEST(Variables, DeniedOnesArePatterns) {
  EXPECT_THAT(ParseDeniedVariables({{"AWS_*", "--env-deny"}, {"X", "--env-deny"}}),
              IsOkAndHolds(ElementsAre("AWS_*", "X")));
  EXPECT_THAT(ParseDeniedVariables({{"A=secret", "--env-deny"}}),
              StatusIs(absl::StatusCode::kInvalidArgument, "--env-deny: a pattern for names has no '='"));
  EXPECT_THAT(
      ParseDeniedVariables({{"A[BC]", "--env-deny"}}),
      StatusIs(absl::StatusCode::kInvalidArgument, "--env-deny \"A[BC]\": only * and ? have a meaning in a pattern"));
}

TEST(Variables, PatternsMatchAsTheShellsDo) {
  for (const auto& [pattern, text] : std::vector<std::pair<std::string, std::string>>{{"", ""},
                                                                                      {"*", ""},
                                                                                      {"*", "abc"},
                                                                                      {"a*", "a"},
                                                                                      {"a*c", "abbc"},
                                                                                      {"a*c", "acc"},
                                                                                      {"?b?", "abc"},
                                                                                      {"**a**", "xa"},
                                                                                      {"AWS_*", "AWS_KEY"},
                                                                                      {"*TOKEN*", "API_TOKEN"},
                                                                                      {"a*b*c", "a-b-b-c"},
                                                                                      {"[", "["}}) {
    EXPECT_TRUE(MatchesPattern(pattern, text)) << pattern << " " << text;
  }
  for (const auto& [pattern, text] : std::vector<std::pair<std::string, std::string>>{{"", "a"},
                                                                                      {"?", ""},
                                                                                      {"a", "ab"},
                                                                                      {"a*c", "ab"},
                                                                                      {"AWS_*", "AWS"},
                                                                                      {"aws_*", "AWS_KEY"},
                                                                                      {"*a", "ab"},
                                                                                      {"?", "ab"}}) {
    EXPECT_FALSE(MatchesPattern(pattern, text)) << pattern << " " << text;
  }
}

// A pattern that makes a naive matcher take for ever.
TEST(Variables, ManyStarsTakeNoTime) {
  std::string pattern;
  for (int i = 0; i < 1000; ++i) pattern += "*a";
  EXPECT_FALSE(MatchesPattern(pattern + "b", std::string(5000, 'a')));
}

}  // namespace
}  // namespace farandole
