#include "launcher/plan/network_choice.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launcher/cli/settings.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<OfferedAddress>& Offered() {
  static const auto* const kOffered = new std::vector<OfferedAddress>{
      {"lo", "127.0.0.1", 8},       {"lo", "::1", 128},         {"docker0", "172.17.0.1", 16},
      {"old", "fec0::1", 64},       {"eth0", "10.1.2.3", 16},   {"eth0", "fe80::3%eth0", 64},
      {"eth0", "fd00::3", 64},      {"ib0", "192.168.7.3", 24}, {"ll0", "169.254.3.4", 16},
      {"bad", "not an address", 0}, {"bad", "0.0.0.0", 0},      {"bad", "ff02::1", 8},
  };
  return *kOffered;
}

NetworkChoice Choice(const std::string& text) {
  if (text.empty()) return {};
  const absl::StatusOr<NetworkChoice> choice = ParseNetworkChoice({{text, "--network-interface"}});
  EXPECT_TRUE(choice.ok()) << choice.status();
  return *choice;
}

std::string Chosen(const std::string& text, const std::string& host = "a") {
  const auto chosen = ChooseAddresses(Choice(text), host, Offered());
  if (!chosen.ok()) return std::string(chosen.status().message());
  return absl::StrJoin(*chosen, " ", [](std::string* out, const OfferedAddress& address) { *out += address.address; });
}

TEST(NetworkChoice, WithoutAWishEveryAddressThatOthersMayReachGlobalOnesFirst) {
  EXPECT_EQ(Chosen(""), "172.17.0.1 10.1.2.3 fd00::3 192.168.7.3 fec0::1");
  EXPECT_EQ(Chosen("b=eth0"), "172.17.0.1 10.1.2.3 fd00::3 192.168.7.3 fec0::1");
}

TEST(NetworkChoice, NamesAndRangesInTheirOrder) {
  EXPECT_EQ(Chosen("eth0"), "10.1.2.3 fd00::3");
  EXPECT_EQ(Chosen("ib0,eth0"), "192.168.7.3 10.1.2.3 fd00::3");
  EXPECT_EQ(Chosen("10.0.0.0/8"), "10.1.2.3");
  EXPECT_EQ(Chosen("fd00::/8,10.0.0.0/8"), "fd00::3 10.1.2.3");
  EXPECT_EQ(Chosen("fe80::/10"), "fe80::3%eth0");
  EXPECT_EQ(Chosen("ll0"), "169.254.3.4");
  EXPECT_EQ(Chosen("lo"), "127.0.0.1 ::1");
  EXPECT_EQ(Chosen("eth0,10.0.0.0/8"), "10.1.2.3 fd00::3");
}

TEST(NetworkChoice, AHostsOwnRulesReplaceTheOthers) {
  EXPECT_EQ(Chosen("eth0,b=ib0", "b"), "192.168.7.3");
  EXPECT_EQ(Chosen("eth0,b=ib0", "a"), "10.1.2.3 fd00::3");
  EXPECT_EQ(Chosen("b=ib0,b=10.0.0.0/8", "b"), "192.168.7.3 10.1.2.3");
}

TEST(NetworkChoice, OfRulesForAllOneHasToFitAndOfRulesForOneEach) {
  EXPECT_EQ(Chosen("eth7,ib0"), "192.168.7.3");
  constexpr char kHas[] =
      "and it has lo 127.0.0.1/8, lo ::1/128, docker0 172.17.0.1/16, old fec0::1/64, eth0 10.1.2.3/16";
  EXPECT_THAT(Chosen("eth7"), HasSubstr("host a: --network-interface asks for eth7, "));
  EXPECT_THAT(Chosen("eth7"), HasSubstr(kHas));
  EXPECT_THAT(Chosen("eth7,11.0.0.0/8"), HasSubstr("asks for eth7 or 11.0.0.0/8, "));
  EXPECT_THAT(Chosen("::2=ib0,::2=eth7", "::2"), HasSubstr("host ::2: --network-interface asks for eth7, "));
  EXPECT_THAT(Chosen("::2=eth7", "::2"), HasSubstr("for hosts that differ write [::2]=INTERFACE or a range"));
}

TEST(NetworkChoice, AHostThatOffersNothingOfUseIsAnErrorThatSaysWhatItHas) {
  const std::vector<OfferedAddress> loopback = {{"lo", "127.0.0.1", 8}};
  EXPECT_THAT(ChooseAddresses({}, "a", loopback),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "host a: no address that others could reach; it has lo 127.0.0.1/8"));
  EXPECT_THAT(ChooseAddresses({}, "a", {}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("no address at all")));
}

// Offers come from another machine.
TEST(NetworkChoice, AMessageIsOneLineOfBoundedLengthWhateverIsOffered) {
  const std::vector<OfferedAddress> odd(1000, {std::string(500, '\n'), "x", 1});
  const auto chosen = ChooseAddresses({}, "a", odd);
  ASSERT_FALSE(chosen.ok());
  EXPECT_EQ(chosen.status().message().find('\n'), absl::string_view::npos);
  EXPECT_LT(chosen.status().message().size(), 20'000u);
}

TEST(NetworkChoice, InterfacesEachOnce) {
  EXPECT_THAT(InterfacesOf(Offered()), ElementsAre("lo", "docker0", "old", "eth0", "ib0", "ll0", "bad"));
}

}  // namespace
}  // namespace farandole
