#include "collectives/engine/pending_table.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "collectives/engine/request.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::StatusIs;
using ::testing::HasSubstr;

absl::Status Add(PendingTable& table, std::vector<std::string> names) {
  std::vector<Request> requests;
  for (std::string& name : names) {
    requests.emplace_back();
    requests.back().name = std::move(name);
  }
  const size_t count = requests.size();
  return table.Add(std::move(requests), std::vector<Engine::Done>(count));
}

TEST(PendingTable, ANameIsTakenUntilItsRunIsOver) {
  PendingTable table;
  EXPECT_OK(Add(table, {"a"}));
  EXPECT_THAT(Add(table, {"a"}), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("same name")));
  EXPECT_TRUE(table.Take("a").has_value());
  EXPECT_FALSE(table.Take("a").has_value());
  EXPECT_THAT(Add(table, {"a"}), StatusIs(absl::StatusCode::kInvalidArgument));
  table.Finished("a");
  EXPECT_OK(Add(table, {"a"}));
}

TEST(PendingTable, AGroupIsTakenWholeOrNotAtAll) {
  PendingTable table;
  EXPECT_OK(Add(table, {"b"}));
  EXPECT_FALSE(Add(table, {"a", "b", "c"}).ok());
  EXPECT_FALSE(Add(table, {"c", "c"}).ok());
  EXPECT_OK(Add(table, {"a", "c"}));
  const std::vector<Announcement> news = table.TakeNew();
  ASSERT_EQ(news.size(), 3u);
  EXPECT_EQ(news[0].group, 0u);
  EXPECT_NE(news[1].group, 0u);
  EXPECT_EQ(news[1].group, news[2].group);
  EXPECT_EQ(news[1].group_size, 2u);
  EXPECT_TRUE(table.TakeNew().empty());
}

TEST(PendingTable, AGroupIsKnownByItsNamesInAnyOrder) {
  const auto group_of = [](std::vector<std::string> names) {
    PendingTable table;
    EXPECT_OK(Add(table, std::move(names)));
    return table.TakeNew()[0].group;
  };
  EXPECT_EQ(group_of({"a", "b"}), group_of({"b", "a"}));
  EXPECT_NE(group_of({"a", "b"}), group_of({"a", "c"}));
  EXPECT_NE(group_of({"a", "b"}), group_of({"a", "b", "c"}));
}

TEST(PendingTable, ClosingGivesBackWhatWaitsAndRefusesWhatComes) {
  PendingTable table;
  EXPECT_OK(Add(table, {"runs"}));
  EXPECT_OK(Add(table, {"waits"}));
  EXPECT_TRUE(table.Take("runs").has_value());
  const std::vector<Pending> left = table.Close(absl::AbortedError("over"));
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].request.name, "waits");
  EXPECT_THAT(Add(table, {"new"}), StatusIs(absl::StatusCode::kAborted, "over"));
}

}  // namespace
}  // namespace farandole
