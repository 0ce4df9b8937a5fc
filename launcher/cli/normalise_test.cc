#include "launcher/cli/normalise.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launcher/cli/options.h"
#include "tools/base/prng.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::StatusIs;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

Words Split(const std::string& text) { return absl::StrSplit(text, ' ', absl::SkipEmpty()); }

struct GoodCase {
  std::string text;
  std::string canonical;
  std::string command;
};

TEST(Normalise, ReadsEverySpellingThatTheOriginalReads) {
  const GoodCase kCases[] = {
      {"-np 4 train", "--num-proc=4", "train"},
      {"-np=4 train", "--num-proc=4", "train"},
      {"-n 4 train", "--num-proc=4", "train"},
      {"--num-proc 4 train", "--num-proc=4", "train"},
      {"--num-proc=4 train", "--num-proc=4", "train"},
      {"--num-p 4 train", "--num-proc=4", "train"},
      {"-np -4 train", "--num-proc=-4", "train"},
      {"-H a:1 train", "--hosts=a:1", "train"},
      {"-Ha:1 train", "--hosts=a:1", "train"},
      {"-H=a:1 train", "--hosts=a:1", "train"},
      {"--hosts=[::1]:2 train", "--hosts=[::1]:2", "train"},
      {"-hostfile f train", "--hostfile=f", "train"},
      {"--hostf f train", "--hostfile=f", "train"},
      {"-prefix-timestamp train", "--prefix-output-with-timestamp", "train"},
      {"--pre train", "--prefix-output-with-timestamp", "train"},
      {"-cb", "--check-build", ""},
      {"-c", "--check-build", ""},
      {"--verb -np 2 t", "--verbose --num-proc=2", "t"},
      {"-np 2 -np 3 t", "--num-proc=2 --num-proc=3", "t"},
      // The command keeps its own options, and its own "--".
      {"-np 2 train -np 3 --bogus -- -x", "--num-proc=2", "train -np 3 --bogus -- -x"},
      {"-np 2 -- train -- -x", "--num-proc=2", "train -- -x"},
      {"-np 2 -- --odd", "--num-proc=2", "--odd"},
      {"-np 2 - x", "--num-proc=2", "- x"},
      // What follows these does not matter.
      {"-v --bogus", "--version", ""},
      {"--help --autotune", "--help", ""},
  };
  for (const GoodCase& c : kCases) {
    SCOPED_TRACE(c.text);
    ASSERT_OK_AND_ASSIGN(const NormalisedWords words, Normalise(Split(c.text)));
    EXPECT_EQ(words.Canonical(), Split(c.canonical));
    EXPECT_EQ(words.command, Split(c.command));
  }
}

struct BadCase {
  std::string text;
  std::string message;
};

TEST(Normalise, EveryOtherWordIsAnErrorThatHelps) {
  const BadCase kCases[] = {
      {"-np4 train", "there is no option \"-np4\"; write -np 4"},
      {"--verbos=1 t", "--verbose takes no value"},
      {"--verbsoe t", "there is no option \"--verbsoe\"; did you mean --verbose?"},
      {"--output-file-name=x t", "there is no option \"--output-file-name\"; did you mean --output-filename?"},
      {"-x t", "there is no option \"-x\""},
      {"-hosts a:1 t", "there is no option \"-hosts\"; did you mean --hosts?"},
      {"--host a:1 t", "option --host may mean each of --hosts, --hostfile, --host-discovery-script; write more of it"},
      {"-np", "option -np needs a value: -np N"},
      {"-np -v", "option -np needs a value: -np N"},
      {"-H= t", "option -H needs a value: -H HOSTS"},
      {"--completely-different-thing t", "there is no option \"--completely-different-thing\""},
  };
  for (const BadCase& c : kCases) {
    EXPECT_THAT(Normalise(Split(c.text)), StatusIs(absl::StatusCode::kInvalidArgument, c.message)) << c.text;
  }
}

TEST(Normalise, AnEmptyValueIsMissingAndAnEmptyWordIsTheProgram) {
  EXPECT_THAT(Normalise(Words{"-H", "", "train"}),
              StatusIs(absl::StatusCode::kInvalidArgument, "option -H needs a value: -H HOSTS"));
  ASSERT_OK_AND_ASSIGN(const NormalisedWords words, Normalise(Words{"-np", "1", "", "x"}));
  EXPECT_EQ(words.command, (Words{"", "x"}));
}

TEST(Normalise, EveryOptionNotThereYetIsKnownByEachOfItsNames) {
  int checked = 0;
  for (const OptionSpec& option : AllOptions()) {
    if (option.available()) continue;
    for (absl::string_view word : option.Words()) {
      ++checked;
      EXPECT_THAT(Normalise(Words{std::string(word), "1"}),
                  StatusIs(absl::StatusCode::kInvalidArgument,
                           "option " + std::string(option.Usual()) +
                               " is not there yet (this version has: -np, -H, -hostfile, --output-filename, "
                               "-prefix-timestamp, --verbose, -cb, -v, -h)"))
          << word;
    }
  }
  EXPECT_EQ(checked, 57);
}

TEST(Normalise, RandomWordsGiveAnAnswer) {
  const char* const kPieces[] = {"-",   "--",      "np", "H",    "hostfile", "=",  "4",
                                 "a:1", "verbose", "",   "\xff", "v",        "cb", "--x"};
  Prng prng(7);
  int good = 0;
  for (int round = 0; round < 20'000; ++round) {
    Words words(prng.Below(5));
    for (std::string& word : words) {
      for (uint64_t piece = prng.Below(4); piece > 0; --piece) word += kPieces[prng.Below(std::size(kPieces))];
    }
    const auto result = Normalise(words);
    good += result.ok();
    EXPECT_TRUE(result.ok() || absl::IsInvalidArgument(result.status())) << result.status();
  }
  EXPECT_GT(good, 1000);
}

}  // namespace
}  // namespace farandole
