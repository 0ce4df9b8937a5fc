#include "proto/convert/types_convert.h"

#include <functional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::IsOkAndHolds;
using ::farandole::testing::StatusIs;
using ::testing::HasSubstr;

const WorkerId kWorker{SlotId{"a", 2}, Incarnation(0xfedcba9876543210)};
const Placement kPlace{.rank = 1, .size = 2, .local_rank = 0, .local_size = 1, .cross_rank = 1, .cross_size = 2};

v1::Assignment TwoMembers() {
  v1::Assignment proto;
  proto.set_generation(7);
  for (int rank : {0, 1}) {
    Placement place = kPlace;
    place.rank = rank;
    *proto.add_members() = ToProto(AssignedMember{kWorker, place, "127.0.0.1:1"});
  }
  return proto;
}

TEST(TypesConvert, KeepsEveryField) {
  EXPECT_THAT(FromProto(ToProto(kWorker)), IsOkAndHolds(kWorker));
  EXPECT_THAT(FromProto(ToProto(kPlace)), IsOkAndHolds(kPlace));
  for (const ExitStatus& status : {ExitStatus{0, 0}, ExitStatus{255, 0}, ExitStatus{0, 9}}) {
    EXPECT_THAT(FromProto(ToProto(status)), IsOkAndHolds(status));
  }
  for (const absl::Duration duration : {absl::Nanoseconds(1), absl::Milliseconds(250), absl::Seconds(3)}) {
    EXPECT_THAT(FromProto(ToProto(duration)), IsOkAndHolds(duration));
  }
  ASSERT_OK_AND_ASSIGN(const std::vector<AssignedMember> members, FromProto(TwoMembers()));
  ASSERT_EQ(members.size(), 2u);
  EXPECT_EQ(members[1].worker, kWorker);
  EXPECT_EQ(members[1].placement, kPlace);
  EXPECT_EQ(members[1].endpoint, "127.0.0.1:1");
  EXPECT_EQ(ToProto(Generation(7), members).SerializeAsString(), TwoMembers().SerializeAsString());
}

TEST(TypesConvert, NamesTheFieldOfAWorkerThatIsWrong) {
  const auto wrong = [](const std::function<void(v1::WorkerId*)>& change) {
    v1::WorkerId proto = ToProto(kWorker);
    change(&proto);
    return FromProto(proto);
  };
  using ::absl::StatusCode;
  EXPECT_THAT(wrong([](auto* id) { id->clear_host(); }), StatusIs(StatusCode::kInvalidArgument, "host is empty"));
  EXPECT_THAT(wrong([](auto* id) { id->set_slot(1u << 31); }),
              StatusIs(StatusCode::kInvalidArgument, "slot 2147483648 is too large"));
  EXPECT_THAT(wrong([](auto* id) { id->clear_incarnation(); }),
              StatusIs(StatusCode::kInvalidArgument, "incarnation is zero"));
}

TEST(TypesConvert, NamesTheFieldOfAPlaceThatIsWrong) {
  const auto wrong = [](const std::function<void(v1::Placement*)>& change) {
    v1::Placement proto = ToProto(kPlace);
    change(&proto);
    return FromProto(proto);
  };
  using ::absl::StatusCode;
  EXPECT_THAT(wrong([](auto* place) { place->set_rank(2); }),
              StatusIs(StatusCode::kInvalidArgument, "rank 2 is not below 2"));
  EXPECT_THAT(wrong([](auto* place) { place->clear_local_size(); }),
              StatusIs(StatusCode::kInvalidArgument, "local_rank has 0 places"));
  EXPECT_THAT(wrong([](auto* place) { place->set_cross_size(1u << 31); }),
              StatusIs(StatusCode::kInvalidArgument, "cross_rank has 2147483648 places"));
}

TEST(TypesConvert, NamesTheMemberThatIsWrong) {
  const auto wrong = [](const std::function<void(v1::Assignment*)>& change) {
    v1::Assignment proto = TwoMembers();
    change(&proto);
    return FromProto(proto);
  };
  using ::absl::StatusCode;
  EXPECT_THAT(wrong([](auto* proto) { proto->clear_generation(); }),
              StatusIs(StatusCode::kInvalidArgument, "generation is zero"));
  EXPECT_THAT(wrong([](auto* proto) { proto->clear_members(); }),
              StatusIs(StatusCode::kInvalidArgument, "members is empty"));
  EXPECT_THAT(wrong([](auto* proto) { proto->mutable_members(1)->mutable_worker()->clear_host(); }),
              StatusIs(StatusCode::kInvalidArgument, "members[1]: worker: host is empty"));
  EXPECT_THAT(wrong([](auto* proto) { proto->mutable_members(0)->clear_endpoint(); }),
              StatusIs(StatusCode::kInvalidArgument, "members[0]: endpoint is empty"));
  EXPECT_THAT(wrong([](auto* proto) { proto->mutable_members(0)->mutable_placement()->set_rank(1); }),
              StatusIs(StatusCode::kInvalidArgument, "members[0] has rank 1 of 2 among 2 members"));
  EXPECT_THAT(wrong([](auto* proto) { proto->mutable_members()->RemoveLast(); }),
              StatusIs(StatusCode::kInvalidArgument, "members[0] has rank 0 of 2 among 1 members"));
}

TEST(TypesConvert, RefusesExitsAndSpansThatCannotBe) {
  v1::ExitStatus status;
  EXPECT_THAT(FromProto(status), StatusIs(absl::StatusCode::kInvalidArgument, "how is not set"));
  status.set_code(256);
  EXPECT_THAT(FromProto(status), StatusIs(absl::StatusCode::kInvalidArgument, "code 256 is above 255"));
  status.set_signal(0);
  EXPECT_THAT(FromProto(status), StatusIs(absl::StatusCode::kInvalidArgument, "signal 0 is no signal"));
  google::protobuf::Duration duration;
  EXPECT_THAT(FromProto(duration), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("0 is not between")));
  duration.set_seconds(-1);
  EXPECT_THAT(FromProto(duration), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("-1s is not between")));
  duration.set_seconds(INT64_MAX);
  EXPECT_THAT(FromProto(duration), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ToUtf8, KeepsUtf8AndReplacesEverythingElse) {
  EXPECT_EQ(ToUtf8(""), "");
  EXPECT_EQ(ToUtf8("a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z"), "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z");
  EXPECT_EQ(ToUtf8("/tmp/\xff\xe4x"), "/tmp/\xef\xbf\xbd\xef\xbf\xbdx");
  EXPECT_EQ(ToUtf8("\xc3"), "\xef\xbf\xbd");                                  // cut off
  EXPECT_EQ(ToUtf8("\xc0\xaf"), "\xef\xbf\xbd\xef\xbf\xbd");                  // too long a form of '/'
  EXPECT_EQ(ToUtf8("\xed\xa0\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");  // a surrogate
}

}  // namespace
}  // namespace farandole
