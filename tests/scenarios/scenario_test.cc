// Runs every transcript of this folder. After a change that is meant:
//
//   FARANDOLE_UPDATE_SCENARIOS=$PWD/tests/scenarios bazel-bin/tests/scenarios/scenario_test
//
// writes what happened into the files; review the difference like code.

#include "tests/scenarios/scenario.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/scenarios/transcript.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::StatusIs;
using ::testing::HasSubstr;

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

const char* UpdateFolder() { return std::getenv("FARANDOLE_UPDATE_SCENARIOS"); }

std::vector<std::filesystem::path> Transcripts() {
  std::vector<std::filesystem::path> paths;
  const char* update = UpdateFolder();
  for (const auto& entry : std::filesystem::directory_iterator(update != nullptr ? update : "tests/scenarios")) {
    if (entry.path().extension() == ".txt") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

class ScenarioTest : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(ScenarioTest, GoesAsWritten) {
  const std::string text = ReadFile(GetParam());
  ASSERT_THAT(text, ::testing::StartsWith("# ")) << "a transcript begins with what it shows";
  ASSERT_OK_AND_ASSIGN(const std::vector<TranscriptBlock> blocks, ParseTranscript(text));
  ASSERT_FALSE(blocks.empty());
  Scenario scenario;
  const auto run = [&](const TranscriptBlock& block) {
    const std::string output = scenario.Run(block.commands);
    EXPECT_THAT(output, ::testing::Not(HasSubstr("error:"))) << "line " << block.first_line;
    if (UpdateFolder() == nullptr) {
      EXPECT_EQ(output, block.expected) << "line " << block.first_line;
    }
    return output;
  };
  const std::string rewritten = RewriteTranscript(blocks, run);
  if (UpdateFolder() != nullptr) std::ofstream(GetParam()) << rewritten;
}

INSTANTIATE_TEST_SUITE_P(All, ScenarioTest, ::testing::ValuesIn(Transcripts()),
                         [](const auto& info) { return info.param.stem().string(); });

TEST(Transcript, KeepsCommentsAndCommandsAndReplacesWhatWasExpected) {
  const std::string text = "# why\n\none\ntwo\n----\nold\n\n# more\nthree\n----\n";
  ASSERT_OK_AND_ASSIGN(const std::vector<TranscriptBlock> blocks, ParseTranscript(text));
  ASSERT_EQ(blocks.size(), 2);
  EXPECT_EQ(blocks[0].expected, "old\n");
  EXPECT_EQ(blocks[1].first_line, 8);
  const auto run = [](const TranscriptBlock& block) { return absl::StrCat(block.commands.size(), "\n"); };
  EXPECT_EQ(RewriteTranscript(blocks, run), "# why\n\none\ntwo\n----\n2\n\n# more\nthree\n----\n1\n");
}

TEST(Transcript, CommandsWithoutARuleAreAnError) {
  EXPECT_THAT(ParseTranscript("# why\n\n----\n\nready a\n"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("line 5")));
}

TEST(Scenario, AWordThatIsNotUnderstoodIsAnError) {
  Scenario scenario;
  EXPECT_THAT(scenario.Run({"ready a"}), HasSubstr("error: the first command"));
  EXPECT_THAT(scenario.Run({"job np=3 hosts=a:2"}), HasSubstr("error: 3 processes"));
  scenario.Run({"job np=1 hosts=a:1"});
  EXPECT_THAT(scenario.Run({"jump a"}), HasSubstr("error: no command is called \"jump\""));
  EXPECT_THAT(scenario.Run({"advance far"}), HasSubstr("error: cannot read"));
  EXPECT_THAT(scenario.Run({"exit a/0 code=x"}), HasSubstr("error: cannot read"));
  EXPECT_THAT(scenario.Run({"ready"}), HasSubstr("error: nobody"));
}

}  // namespace
}  // namespace farandole
