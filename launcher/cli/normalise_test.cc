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
      {"-p22 t", "--ssh-port=22", "t"},
      {"-p 22 -ikey t", "--ssh-port=22 --ssh-identity-file=key", "t"},
      {"--slots 4 t", "--slots-per-host=4", "t"},
      {"--min-num 2 t", "--min-num-proc=2", "t"},
      {"--output d t", "--output-filename=d", "t"},
      {"--output-d d t", "--output-dir=d", "t"},
      {"--dry t", "--dry-run", "t"},
      {"--d t", "--disable-cache", "t"},
      {"--mpi-args=-x t", "--mpi-args=-x", "t"},
      {"--no-stall-check t", "--no-stall-check", "t"},
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
      {"--blacklist-cooldown-range 10 --x",
       "option --blacklist-cooldown-range needs two values: --blacklist-cooldown-range MIN MAX"},
      {"--blacklist-cooldown-range=10 20 t",
       "option --blacklist-cooldown-range needs two values: --blacklist-cooldown-range MIN MAX"},
      {"--hier t",
       "option --hier may mean each of --hierarchical-allreduce, --hierarchical-allgather; write more of it"},
      {"--tcp-flag t", "there is no option \"--tcp-flag\""},
      {"--mpi-args -x t", "option --mpi-args needs a value: --mpi-args ARGS"},
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

TEST(Normalise, TwoValuesAndValuesThatLookLikeOptions) {
  ASSERT_OK_AND_ASSIGN(NormalisedWords words, Normalise(Words{"--blacklist-cooldown-range", "10", "20", "t"}));
  EXPECT_EQ(words.options[0].value, "10 20");
  EXPECT_EQ(words.command, Words{"t"});
  ASSERT_OK_AND_ASSIGN(words, Normalise(Words{"--mpi-args", "-x PATH", "t"}));
  EXPECT_EQ(words.options[0].value, "-x PATH");
  EXPECT_EQ(words.command, Words{"t"});
}

TEST(Normalise, EverySpellingOfEveryOptionIsItself) {
  for (const OptionSpec& option : AllOptions()) {
    for (absl::string_view word : option.Words()) {
      Words words = {std::string(word)};
      for (int i = 0; i < option.values; ++i) words.push_back("1");
      ASSERT_OK_AND_ASSIGN(const NormalisedWords normalised, Normalise(words));
      ASSERT_EQ(normalised.options.size(), 1u) << word;
      EXPECT_EQ(normalised.options[0].option, &option) << word;
    }
  }
}

// Whoever abbreviates the original's options must not notice ours.
TEST(Normalise, APrefixThatIsUniqueInTheOriginalStaysSo) {
  for (const OptionSpec& option : AllOptions()) {
    if (option.ours) continue;
    const std::string name(option.Canonical());
    for (size_t size = 3; size < name.size(); ++size) {
      const std::string prefix = name.substr(0, size);
      int meanings = 0;
      for (const OptionSpec& other : AllOptions()) {
        bool begins = false;
        for (absl::string_view word : other.Words()) begins |= word.substr(0, size) == prefix;
        meanings += begins && !other.ours;
      }
      if (meanings != 1 || FindOption(prefix) != nullptr) continue;
      Words words = {prefix};
      for (int i = 0; i < option.values; ++i) words.push_back("1");
      ASSERT_OK_AND_ASSIGN(const NormalisedWords normalised, Normalise(words));
      EXPECT_EQ(normalised.options[0].option, &option) << prefix;
    }
  }
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
