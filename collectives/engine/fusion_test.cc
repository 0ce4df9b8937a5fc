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

Announcement AllReduceOf(std::string name, int64_t count, DType dtype = DType::kFloat32) {
  Announcement asked;
  asked.name = std::move(name);
  asked.shape = {count};
  asked.dtype = dtype;
  return asked;
}

std::vector<std::vector<std::string>> Names(const std::vector<Response>& responses) {
  std::vector<std::vector<std::string>> names;
  for (const Response& response : responses) names.push_back(response.names);
  return names;
}

using Batch = std::vector<std::string>;

TEST(Fusion, PacksUpToTheThresholdAndKeepsTheOrderOfTheRest) {
  const std::vector<FusionUnit> ready = {{AllReduceOf("a", 10)}, {AllReduceOf("b", 10)}, {AllReduceOf("c", 1)}};
  EXPECT_THAT(Names(Fuse(ready, 80)), ElementsAre(Batch{"a", "b"}, Batch{"c"}));
  EXPECT_THAT(Names(Fuse(ready, 44)), ElementsAre(Batch{"a", "c"}, Batch{"b"}));
}

// Whether the huge one is alone or in a group: no sum of sizes may wrap around.
TEST(Fusion, HugeTensorsStayAlone) {
  constexpr int64_t kHuge = int64_t{1} << 60;  // 2^62 bytes, the most that a shape may have
  EXPECT_THAT(Names(Fuse({{AllReduceOf("a", kHuge)}, {AllReduceOf("b", kHuge)}, {AllReduceOf("c", 1)}}, 1000)),
              ElementsAre(Batch{"a"}, Batch{"b"}, Batch{"c"}));
  const FusionUnit group = {AllReduceOf("a", kHuge), AllReduceOf("b", kHuge), AllReduceOf("c", kHuge)};
  EXPECT_THAT(Names(Fuse({{AllReduceOf("x", 1)}, group}, int64_t{1} << 40)),
              ElementsAre(Batch{"x"}, Batch{"a", "b", "c"}));
}

TEST(Fusion, AThresholdOfZeroTurnsItOff) {
  EXPECT_THAT(Names(Fuse({{AllReduceOf("a", 0)}, {AllReduceOf("b", 0)}}, 0)), ElementsAre(Batch{"a"}, Batch{"b"}));
  EXPECT_THAT(Names(Fuse({{AllReduceOf("a", 1)}, {AllReduceOf("b", 1)}}, 0)), ElementsAre(Batch{"a"}, Batch{"b"}));
}

TEST(Fusion, LooksPastWhatCannotRunTogether) {
  Announcement scaled = AllReduceOf("scaled", 1);
  scaled.prescale = 0.5;
  Announcement gathered = AllReduceOf("gathered", 1);
  gathered.kind = OperationKind::kAllGather;
  const std::vector<FusionUnit> ready = {
      {AllReduceOf("a", 1)}, {AllReduceOf("d", 1, DType::kFloat64)}, {scaled}, {gathered}, {AllReduceOf("b", 1)}};
  EXPECT_THAT(Names(Fuse(ready, 1000)), ElementsAre(Batch{"a", "b"}, Batch{"d"}, Batch{"scaled"}, Batch{"gathered"}));
}

TEST(Fusion, DoesNotSplitAGroupByTheThresholdButByType) {
  const FusionUnit group = {AllReduceOf("a", 100), AllReduceOf("d", 1, DType::kFloat64), AllReduceOf("b", 100)};
  EXPECT_THAT(Names(Fuse({group, {AllReduceOf("c", 1)}}, 8)), ElementsAre(Batch{"a", "b"}, Batch{"d"}, Batch{"c"}));
}

}  // namespace
}  // namespace farandole
