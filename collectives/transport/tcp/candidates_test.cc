#include "collectives/transport/tcp/candidates.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "collectives/transport/tcp/socket.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string Bits(absl::string_view endpoint) {
  const auto address = ParseEndpoint(WithoutZone(endpoint));
  return address.ok() ? AddressBits(*address) : "";
}

OwnAddress Own(absl::string_view address, int prefix, std::string zone = "") {
  return {Bits(JoinEndpoint(address, 0)), prefix, std::move(zone)};
}

std::vector<std::string> Order(const std::vector<std::string>& endpoints, const std::vector<OwnAddress>& own,
                               bool same_host = false) {
  std::vector<Candidate> candidates;
  for (const std::string& endpoint : endpoints) candidates.push_back({endpoint, Bits(endpoint)});
  return OrderCandidates(candidates, own, same_host);
}

TEST(OrderCandidates, TheSubnetOfOneOfOursComesFirst) {
  EXPECT_THAT(Order({"172.16.0.9:1", "10.1.2.3:2", "10.0.0.8:3"}, {Own("10.0.0.7", 24)}),
              ElementsAre("10.0.0.8:3", "172.16.0.9:1", "10.1.2.3:2"));
  EXPECT_THAT(Order({"10.0.1.8:1", "10.0.0.8:2"}, {Own("10.0.0.7", 23)}), ElementsAre("10.0.1.8:1", "10.0.0.8:2"))
      << "both are in it: as listed";
  EXPECT_THAT(Order({"10.0.0.8:1", "192.168.7.2:2"}, {Own("10.0.0.7", 32), Own("192.168.7.1", 30)}),
              ElementsAre("192.168.7.2:2", "10.0.0.8:1"));
  EXPECT_THAT(Order({"10.0.0.8:1", "[fd00:1::9]:2", "[fd00::9]:3"}, {Own("fd00::7", 64)}),
              ElementsAre("[fd00::9]:3", "[fd00:1::9]:2", "10.0.0.8:1"));
}

TEST(OrderCandidates, ThenTheFamilyOfOneOfOurs) {
  EXPECT_THAT(Order({"[fd00::9]:1", "172.16.0.9:2"}, {Own("10.0.0.7", 24)}),
              ElementsAre("172.16.0.9:2", "[fd00::9]:1"));
  EXPECT_THAT(Order({"[fd00::9]:1", "172.16.0.9:2"}, {}), ElementsAre("[fd00::9]:1", "172.16.0.9:2"));
}

TEST(OrderCandidates, WithoutAPrefixTheLongestCommonBeginning) {
  EXPECT_THAT(Order({"172.16.0.9:1", "10.1.2.3:2", "10.0.0.8:3"}, {Own("10.0.0.7", -1)}),
              ElementsAre("10.0.0.8:3", "10.1.2.3:2", "172.16.0.9:1"));
}

TEST(OrderCandidates, WhatExistsOnEveryHostComesLastUnlessThePeerIsHere) {
  const std::vector<OwnAddress> own = {Own("172.17.0.1", 16), Own("10.0.0.7", 24)};
  const std::vector<std::string> endpoints = {"127.0.0.1:1", "[::1]:2", "172.17.0.1:3", "198.51.100.4:4", "10.0.0.8:5"};
  EXPECT_THAT(Order(endpoints, own),
              ElementsAre("10.0.0.8:5", "198.51.100.4:4", "172.17.0.1:3", "127.0.0.1:1", "[::1]:2"));
  EXPECT_THAT(Order(endpoints, own, /*same_host=*/true),
              ElementsAre("172.17.0.1:3", "10.0.0.8:5", "127.0.0.1:1", "198.51.100.4:4", "[::1]:2"));
}

TEST(OrderCandidates, ALinkLocalAddressIsTriedThroughOurOwnInterfaces) {
  const std::vector<OwnAddress> own = {Own("fe80::7", 64, "eth0"), Own("fe80::8", 64, "ib0"), Own("10.0.0.7", 24)};
  EXPECT_THAT(Order({"[fe80::9%enp3]:1", "10.0.0.8:2"}, own),
              ElementsAre("[fe80::9%eth0]:1", "[fe80::9%ib0]:1", "10.0.0.8:2"));
  EXPECT_THAT(Order({"[fe80::9%enp3]:1"}, {Own("10.0.0.7", 24)}), ElementsAre("[fe80::9%enp3]:1"));
  EXPECT_THAT(Order({"[fe80::9%ib0]:1"}, own, /*same_host=*/true), ElementsAre("[fe80::9%ib0]:1"));
}

TEST(OrderCandidates, WhatCannotBeReadIsKeptAtTheEnd) {
  EXPECT_THAT(Order({"nonsense", "10.0.0.8:2"}, {Own("10.0.0.7", 24)}), ElementsAre("10.0.0.8:2", "nonsense"));
}

TEST(SplitEndpoints, ReadsAListOfBoundedLength) {
  EXPECT_THAT(SplitEndpoints(""), IsEmpty());
  EXPECT_THAT(SplitEndpoints("127.0.0.1:1"), ElementsAre("127.0.0.1:1"));
  EXPECT_THAT(SplitEndpoints("127.0.0.1:1,,[::1]:2,"), ElementsAre("127.0.0.1:1", "[::1]:2"));
  std::string many;
  for (int i = 0; i < 100; ++i) absl::StrAppend(&many, "127.0.0.1:", i, ",");
  const std::vector<std::string> read = SplitEndpoints(many);
  EXPECT_EQ(read.size(), static_cast<size_t>(kEndpointsMax));
  EXPECT_EQ(read.back(), absl::StrCat("127.0.0.1:", kEndpointsMax - 1));
}

TEST(WithoutZone, TakesOnlyTheZone) {
  EXPECT_EQ(WithoutZone("[fe80::1%eth0]:80"), "[fe80::1]:80");
  EXPECT_EQ(WithoutZone("[fe80::1]:80"), "[fe80::1]:80");
  EXPECT_EQ(WithoutZone("127.0.0.1:80"), "127.0.0.1:80");
  EXPECT_EQ(WithoutZone("%"), "");
}

}  // namespace
}  // namespace farandole
