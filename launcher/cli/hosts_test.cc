#include "launcher/cli/hosts.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/prng.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::IsOkAndHolds;
using ::farandole::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Hosts = std::vector<HostSpec>;

struct ListCase {
  std::string text;
  Hosts hosts;
};

TEST(HostList, TakesEveryUsualForm) {
  const ListCase kCases[] = {
      {"localhost", {{"localhost", 1}}},
      {"localhost:2", {{"localhost", 2}}},
      {"127.0.0.2", {{"127.0.0.2", 1}}},
      {"a:1,b:2", {{"a", 1}, {"b", 2}}},
      {"me@a:2,you@[::1]", {{"a", 2, "me"}, {"::1", 1, "you"}}},
      {"a slots=2 port=2222 user=me , b:3 port = 22", {{"a", 2, "me", 2222}, {"b", 3, "", 22}}},
      {"DOMAIN\\me@a,me@corp@b", {{"a", 1, "DOMAIN\\me"}, {"b", 1, "me@corp"}}},
      {"a:1 ,b:1", {{"a", 1}, {"b", 1}}},
      {"  a:1,\tb ", {{"a", 1}, {"b", 1}}},
      {"[::1]:2", {{"::1", 2}}},
      {"[::1]", {{"::1", 1}}},
      {"[fe80::1%eth0]:3,gpu_7.example-1.org:08", {{"fe80::1%eth0", 3}, {"gpu_7.example-1.org", 8}}},
      {"localhost:2,127.0.0.1:2", {{"localhost", 2}, {"127.0.0.1", 2}}},
      {"a:100000", {{"a", 100000}}},
  };
  for (const ListCase& c : kCases) EXPECT_THAT(ParseHostList("-H", c.text), IsOkAndHolds(c.hosts)) << c.text;
}

struct ErrorCase {
  std::string text;
  std::string message;  // the whole of it
};

TEST(HostList, ErrorsHaveTheColumnTheTextAndAHint) {
  const ErrorCase kCases[] = {
      {"", "-H, column 1: \"\": a host is missing"},
      {"a:1,", "-H, column 5: \"a:1,\": a host is missing"},
      {"a:1,,b:1", "-H, column 5: \"a:1,,b:1\": a host is missing"},
      {"a:1 b:1", "-H, column 4: \"a:1 b:1\": a blank inside; hosts are separated by commas"},
      {"a:1,b:x", "-H, column 7: \"b:x\": \"x\" is not a number of slots; write HOST:4"},
      {"a:1,b:", "-H, column 7: \"b:\": the number of slots is missing"},
      {"a:0", "-H, column 3: \"a:0\": 0 slots; leave the host out instead"},
      {"a:-2", "-H, column 3: \"a:-2\": a number of slots cannot be negative"},
      {"a:100001", "-H, column 3: \"a:100001\": more than 100000 slots on one host"},
      {"a:99999999999999999999", "-H, column 3: \"a:99999999999999999999\": more than 100000 slots on one host"},
      {"a:2.5", "-H, column 3: \"a:2.5\": \"2.5\" is not a number of slots; write HOST:4"},
      {":2", "-H, column 1: \":2\": the host's name is missing"},
      {"a!b:2", "-H, column 2: \"a!b:2\": \"!\" cannot be in a host's name"},
      {"-a:2", "-H, column 1: \"-a:2\": a host's name cannot begin so"},
      {"::1:2", "-H, column 1: \"::1:2\": an IPv6 address needs brackets; write [::1]:2"},
      {"::1", "-H, column 1: \"::1\": an IPv6 address needs brackets; write [::1]"},
      {"[::1", "-H, column 1: \"[::1\": the bracket is not closed; write [::1]:2"},
      {"[host]:2", "-H, column 2: \"[host]:2\": \"host\" is not an IPv6 address"},
      {"[::1]2", "-H, column 6: \"[::1]2\": expected ':' and a number of slots after the bracket"},
      {"a:22:2",
       "-H, column 5: \"a:22:2\": a second ':'; write HOST:SLOTS, and for a port of ssh \"HOST:SLOTS port=2222\""},
      {"@a:2", "-H, column 1: \"@a:2\": the user's name is missing"},
      {"-l@a:2", "-H, column 1: \"-l@a:2\": \"-l\" cannot be a user's name"},
      {"b,m;e@a", "-H, column 3: \"m;e@a\": \"m;e\" cannot be a user's name"},
      {"me@:2", "-H, column 4: \"me@:2\": the host's name is missing"},
      {"me@a user=you", "-H, column 11: \"me@a user=you\": the user is given twice"},
      {"a port=0", "-H, column 8: \"a port=0\": \"0\" is not a port for ssh; write port=2222, 1 to 65535"},
      {"a port=65536", "-H, column 8: \"a port=65536\": \"65536\" is not a port for ssh; write port=2222, 1 to 65535"},
      {"a port=", "-H, column 8: \"a port=\": \"\" is not a port for ssh; write port=2222, 1 to 65535"},
      {"a port=1 port=1", "-H, column 15: \"a port=1 port=1\": the port is given twice"},
      {"a slots=1 slots=1", "-H, column 11: \"a slots=1 slots=1\": the slots are given twice"},
      {"a:1 b", "-H, column 4: \"a:1 b\": a blank inside; hosts are separated by commas"},
      {"a:1,b:1,a:2", "-H, column 9: \"a:2\": the host was named before (column 1); name it once, with all its slots"},
  };
  for (const ErrorCase& c : kCases) {
    EXPECT_THAT(ParseHostList("-H", c.text), StatusIs(absl::StatusCode::kInvalidArgument, c.message)) << c.text;
  }
}

TEST(Hostfile, TakesCommentsBlankLinesCrlfAndEveryFormOfSlots) {
  const std::string kFile =
      "# our machines\r\n"
      "\r\n"
      "a slots=2  \r\n"
      "b:3\n"
      "   c slots = 2\n"
      "d\tslots=2 # the big one\n"
      "me@g:2 port = 2222\r\n"
      "h slots=2 user=you\n"
      "e#no slots\n"
      "[::1] slots=4\n"
      "f";
  EXPECT_THAT(ParseHostfile("h", kFile), IsOkAndHolds(Hosts{{"a", 2},
                                                            {"b", 3},
                                                            {"c", 2},
                                                            {"d", 2},
                                                            {"g", 2, "me", 2222},
                                                            {"h", 2, "you"},
                                                            {"e", 1},
                                                            {"::1", 4},
                                                            {"f", 1}}));
}

TEST(Hostfile, ErrorsHaveFileLineColumnTextAndAHint) {
  const ErrorCase kCases[] = {
      {"a slots=1\nb lots=8\n",
       "h, line 2, column 3: \"b lots=8\": a host has no \"lots\"; did you mean slots? write \"HOST slots=4 port=2222 "
       "user=me\", what is needed of it"},
      {"a slots\n", "h, line 1, column 3: \"a slots\": not understood; write \"HOST slots=4\", one host per line"},
      {"a slots=\n", "h, line 1, column 9: \"a slots=\": the number of slots is missing"},
      {"\n  a slots=zwei # x\r\n",
       "h, line 2, column 11: \"  a slots=zwei # x\": \"zwei\" is not a number of slots; write HOST:4"},
      {"a slots=2 max_slots=4\n",
       "h, line 1, column 11: \"a slots=2 max_slots=4\": a host has no \"max_slots\"; did you mean slots? write \"HOST "
       "slots=4 port=2222 user=me\", what is needed of it"},
      {"a:2 slots=4\n", "h, line 1, column 5: \"a:2 slots=4\": the slots are given twice"},
      {"a b\n", "h, line 1, column 3: \"a b\": not understood; write \"HOST slots=4\", one host per line"},
      {"a\nb\na slots=3\n",
       "h, line 3, column 1: \"a slots=3\": the host was named before (line 1); name it once, with all its slots"},
      {std::string("a\0z", 3), "h, line 1, column 2: \"a\\x00z\": \"\\x00\" cannot be in a host's name"},
      {"# nothing\n\n", "h: no host in it; write one per line, as \"HOST slots=4\""},
      {"", "h: no host in it; write one per line, as \"HOST slots=4\""},
  };
  for (const ErrorCase& c : kCases) {
    EXPECT_THAT(ParseHostfile("h", c.text), StatusIs(absl::StatusCode::kInvalidArgument, c.message)) << c.text;
  }
}

TEST(HostLine, SaysWhetherTheSlotsWereGiven) {
  ASSERT_OK_AND_ASSIGN(absl::optional<HostLine> line, ParseHostLine("script", 1, " me@a:3 # x\r"));
  ASSERT_TRUE(line.has_value());
  EXPECT_EQ(line->host, (HostSpec{"a", 3, "me"}));
  EXPECT_TRUE(line->has_slots);
  ASSERT_OK_AND_ASSIGN(line, ParseHostLine("script", 2, "a"));
  EXPECT_FALSE(line->has_slots);
  EXPECT_THAT(ParseHostLine("script", 3, "  # nothing"), IsOkAndHolds(absl::optional<HostLine>()));
  EXPECT_THAT(ParseHostLine("script", 4, "a b"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("script, line 4, column 3: \"a b\"")));
}

TEST(Hosts, AWordThatIsATornOffPieceOfAListIsRecognised) {
  for (const char* word : {"b:1", ",b:1", "b:1,", "b:1,c", "[::1]:2", "me@b:1"})
    EXPECT_TRUE(LooksLikeHosts(word)) << word;
  for (const char* word : {"", ",", "python", "./train:1", "a:b", "train.py", "/usr/bin/env", "a:1:2", "::1"}) {
    EXPECT_FALSE(LooksLikeHosts(word)) << word;
  }
}

TEST(Hosts, AreDescribedAsTheyCanBeWritten) {
  const Hosts hosts = {{"localhost", 2}, {"::1", 1}, {"a", 4, "me", 2222}};
  EXPECT_EQ(DescribeHosts(hosts), "localhost:2, [::1]:1, me@a:4 port=2222");
  EXPECT_THAT(ParseHostList("-H", DescribeHosts(hosts)), IsOkAndHolds(hosts));
}

// Whatever the bytes: an answer, and one that keeps the grammar's promises.
TEST(Hosts, RandomBytesGiveAnErrorOrHostsButNeverACrash) {
  constexpr absl::string_view kLikely = "ab1290:,.[]% \t\r\n#=slotsportuser@-_\xff";
  Prng prng(20260);
  int parsed = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text(prng.Below(24), ' ');
    for (char& c : text) {
      c = prng.Chance(9, 10) ? kLikely[prng.Below(kLikely.size())] : static_cast<char>(prng.Below(256));
    }
    for (const auto& hosts : {ParseHostList("-H", text), ParseHostfile("h", text)}) {
      if (!hosts.ok()) {
        EXPECT_EQ(hosts.status().code(), absl::StatusCode::kInvalidArgument);
        EXPECT_THAT(std::string(hosts.status().message()), ::testing::Not(HasSubstr("\n")));
        continue;
      }
      ++parsed;
      EXPECT_THAT(ParseHostList("-H", DescribeHosts(*hosts)), IsOkAndHolds(*hosts)) << text;
      EXPECT_FALSE(hosts->empty());
      for (const HostSpec& host : *hosts) {
        EXPECT_FALSE(host.name.empty());
        EXPECT_GE(host.slots, 1);
        EXPECT_LE(host.slots, kMaxSlots);
      }
    }
    LooksLikeHosts(text);
  }
  EXPECT_GT(parsed, 500);  // else the bytes are not near the grammar
}

}  // namespace
}  // namespace farandole
