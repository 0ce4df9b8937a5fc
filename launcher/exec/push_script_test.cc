#include "launcher/exec/push_script.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace farandole {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Optional;
using ::testing::StartsWith;

const PushScript kScript{"c0ffee", "70cec"};

TEST(PushScript, EveryCommandIsOneLineThatAnyLoginShellPassesOn) {
  for (const std::string& command :
       {kScript.Start(), kScript.Store(true, 14'000'000, 0), kScript.Store(false, 1, 3), kScript.Kill(4711)}) {
    EXPECT_THAT(command, StartsWith("exec /bin/sh -c '"));
    EXPECT_THAT(command, EndsWith("'"));
    const std::string script = command.substr(17, command.size() - 18);
    EXPECT_EQ(script.find_first_of("'\\!\n\r`"), std::string::npos) << script;
    EXPECT_LT(command.size(), 2000u);
  }
}

TEST(PushScript, AsksForWhatItWasGiven) {
  EXPECT_THAT(kScript.Start(), HasSubstr("agent-c0ffee"));
  EXPECT_THAT(kScript.Store(true, 14'000'000, 2), HasSubstr("gzip -dc"));
  EXPECT_THAT(kScript.Store(true, 14'000'000, 2), HasSubstr("-eq 14000000 "));
  EXPECT_THAT(kScript.Store(true, 14'000'000, 2), HasSubstr("-le 2 "));
  EXPECT_THAT(kScript.Kill(4711), HasSubstr("p=4711; "));
}

TEST(AnswerScanner, FindsTheAnswerBehindNoiseHoweverItIsCut) {
  const std::string all = "Welcome!\nfarandole-other start 1\nno end of line\nfarandole-70cec start 12 a b\nagent says";
  for (size_t cut = 0; cut <= all.size(); ++cut) {
    AnswerScanner scanner("70cec");
    absl::optional<std::string> answer = scanner.Append(all.substr(0, cut));
    std::string rest = scanner.rest();
    if (answer.has_value()) {
      rest += all.substr(cut);
    } else {
      answer = scanner.Append(all.substr(cut));
      rest = scanner.rest();
    }
    EXPECT_THAT(answer, Optional(std::string("start 12 a b")));
    EXPECT_EQ(rest, "agent says");
    EXPECT_EQ(scanner.last_noise(), "no end of line");
  }
}

TEST(AnswerScanner, GivesUpOnEndlessNoise) {
  AnswerScanner lines("70cec"), one_line("70cec");
  for (int i = 0; i < 3000; ++i) {
    EXPECT_EQ(lines.Append(std::string(499, 'x') + "\n"), absl::nullopt);
    EXPECT_EQ(one_line.Append(std::string(500, 'x')), absl::nullopt);
  }
  EXPECT_TRUE(lines.gave_up());
  EXPECT_TRUE(one_line.gave_up());
}

}  // namespace
}  // namespace farandole
