#include "collectives/engine/fusion.h"

#include <string>
#include <vector>

#include "collectives/core/types.h"
#include "collectives/engine/wire.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace farandole {
namespace {

using ::testing::ElementsAre;

ReadyRequest AllReduceOf(std::string name, int64_t count, DType dtype = DType::kFloat32) {
  ReadyRequest ready;
  Announcement& asked = ready.asked;
  asked.name = std::move(name);
  asked.shape = {count};
  asked.dtype = dtype;
  return ready;
}

std::vector<std::vector<std::string>> Names(const std::vector<Response>& responses) {
  std::vector<std::vector<std::string>> names;
  for (const Response& response : responses) names.push_back(response.names);
  return names;
}

using Batch = std::vector<std::string>;

TEST(Fusion, PacksUpToTheThresholdAndKeepsTheOrderOfTheRest) {
  const std::vector<FusionUnit> ready = {{AllReduceOf("a", 10)}, {AllReduceOf("b", 10)}, {AllReduceOf("c", 1)}};
  EXPECT_THAT(Names(Fuse(ready, {80})), ElementsAre(Batch{"a", "b"}, Batch{"c"}));
  EXPECT_THAT(Names(Fuse(ready, {44})), ElementsAre(Batch{"a", "c"}, Batch{"b"}));
}

// Whether the huge one is alone or in a group: no sum of sizes may wrap around.
TEST(Fusion, HugeTensorsStayAlone) {
  constexpr int64_t kHuge = int64_t{1} << 60;  // 2^62 bytes, the most that a shape may have
  EXPECT_THAT(Names(Fuse({{AllReduceOf("a", kHuge)}, {AllReduceOf("b", kHuge)}, {AllReduceOf("c", 1)}}, {1000})),
              ElementsAre(Batch{"a"}, Batch{"b"}, Batch{"c"}));
  const FusionUnit group = {AllReduceOf("a", kHuge), AllReduceOf("b", kHuge), AllReduceOf("c", kHuge)};
  EXPECT_THAT(Names(Fuse({{AllReduceOf("x", 1)}, group}, {int64_t{1} << 40})),
              ElementsAre(Batch{"x"}, Batch{"a", "b", "c"}));
}

TEST(Fusion, AThresholdOfZeroTurnsItOff) {
  EXPECT_THAT(Names(Fuse({{AllReduceOf("a", 0)}, {AllReduceOf("b", 0)}}, {0})), ElementsAre(Batch{"a"}, Batch{"b"}));
  EXPECT_THAT(Names(Fuse({{AllReduceOf("a", 1)}, {AllReduceOf("b", 1)}}, {0})), ElementsAre(Batch{"a"}, Batch{"b"}));
}

TEST(Fusion, LooksPastWhatCannotRunTogether) {
  ReadyRequest scaled = AllReduceOf("scaled", 1);
  scaled.asked.prescale = 0.5;
  ReadyRequest gathered = AllReduceOf("gathered", 1);
  gathered.asked.kind = OperationKind::kAllGather;
  const std::vector<FusionUnit> ready = {
      {AllReduceOf("a", 1)}, {AllReduceOf("d", 1, DType::kFloat64)}, {scaled}, {gathered}, {AllReduceOf("b", 1)}};
  EXPECT_THAT(Names(Fuse(ready, {1000})), ElementsAre(Batch{"a", "b"}, Batch{"d"}, Batch{"scaled"}, Batch{"gathered"}));
}

TEST(Fusion, DoesNotSplitAGroupByTheThresholdButByType) {
  const FusionUnit group = {AllReduceOf("a", 100), AllReduceOf("d", 1, DType::kFloat64), AllReduceOf("b", 100)};
  EXPECT_THAT(Names(Fuse({group, {AllReduceOf("c", 1)}}, {8})), ElementsAre(Batch{"a", "b"}, Batch{"d"}, Batch{"c"}));
}

TEST(Fusion, WhatIsMoreUrgentComesFirstAndTheRestInOrder) {
  ReadyRequest urgent = AllReduceOf("urgent", 1, DType::kFloat64);
  urgent.asked.priority = 1;
  EXPECT_THAT(Names(Fuse({{AllReduceOf("a", 1)}, {AllReduceOf("b", 1)}, {urgent}}, {4})),
              ElementsAre(Batch{"urgent"}, Batch{"a"}, Batch{"b"}));
}

TEST(Fusion, AGroupStaysApartWhenAskedTo) {
  const FusionUnit group = {AllReduceOf("a", 1), AllReduceOf("b", 1)};
  EXPECT_THAT(Names(Fuse({{AllReduceOf("x", 1)}, group, {AllReduceOf("y", 1)}}, {1000, true})),
              ElementsAre(Batch{"x", "y"}, Batch{"a", "b"}));
}

TEST(Fusion, WhatDiffersInWhoHasJoinedDoesNotRunTogether) {
  ReadyRequest later = AllReduceOf("later", 1);
  later.joined = {2};
  const std::vector<Response> responses = Fuse({{AllReduceOf("a", 1)}, {later}, {AllReduceOf("b", 1)}}, {1000});
  EXPECT_THAT(Names(responses), ElementsAre(Batch{"a", "b"}, Batch{"later"}));
  EXPECT_TRUE(responses[0].shapes.empty());
  EXPECT_THAT(responses[1].shapes, ElementsAre(std::vector<int64_t>{1}));
}

}  // namespace
}  // namespace farandole
