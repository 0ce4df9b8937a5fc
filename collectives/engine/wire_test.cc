#include "collectives/engine/wire.h"

#include <string>

#include "absl/status/status.h"
#include "collectives/core/types.h"
#include "collectives/engine/request.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/prng.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::StatusIs;
using ::testing::HasSubstr;

RequestList DrawRequests(Prng& prng) {
  RequestList list;
  list.leaving = prng.Chance(1, 4);
  if (prng.Chance(1, 4)) list.failure = "the cable";
  for (uint64_t n = prng.Below(4); n > 0; --n) {
    Announcement asked;
    asked.kind = prng.Chance(1, 2) ? OperationKind::kBroadcast : OperationKind::kAllReduce;
    asked.name = std::string(prng.Below(20), 'x');
    asked.dtype = kDTypes[prng.Below(7)];
    for (uint64_t dims = prng.Below(4); dims > 0; --dims) asked.shape.push_back(static_cast<int64_t>(prng.Below(1000)));
    asked.op = kReduceOps[prng.Below(std::size(kReduceOps))];
    asked.root = static_cast<Rank>(prng.Below(8));
    asked.prescale = prng.Unit();
    asked.group = prng.Below(3);
    asked.group_size = 1 + static_cast<uint32_t>(prng.Below(3));
    list.requests.push_back(asked);
  }
  return list;
}

ResponseList DrawResponses(Prng& prng) {
  ResponseList list;
  if (prng.Chance(1, 3)) {
    list.closed = absl::StatusCode::kUnavailable;
    list.closed_reason = "rank 1 was lost";
  }
  for (uint64_t n = prng.Below(4); n > 0; --n) {
    Response response;
    response.sequence = prng.Next();
    response.kind = OperationKind::kAllGather;
    response.dtype = kDTypes[prng.Below(7)];
    for (uint64_t names = 1 + prng.Below(4); names > 0; --names) response.names.emplace_back(prng.Below(9), 'n');
    for (uint64_t dims = prng.Below(4); dims > 0; --dims)
      response.first_dims.push_back(static_cast<int64_t>(prng.Below(9)));
    if (prng.Chance(1, 4)) {
      response.refusal = "Mismatched data types";
      response.refused = {0, static_cast<int64_t>(prng.Below(9))};
    }
    list.responses.push_back(response);
  }
  return list;
}

TEST(Wire, WhatIsWrittenIsRead) {
  Prng prng(1);
  for (int i = 0; i < 1000; ++i) {
    const RequestList requests = DrawRequests(prng);
    EXPECT_THAT(DecodeRequestList(Encode(requests)), testing::IsOkAndHolds(requests));
    const ResponseList responses = DrawResponses(prng);
    EXPECT_THAT(DecodeResponseList(Encode(responses)), testing::IsOkAndHolds(responses));
  }
}

TEST(Wire, EveryTruncationAndEveryExtraByteIsAnError) {
  Prng prng(2);
  for (int i = 0; i < 100; ++i) {
    const std::string bytes = i % 2 ? Encode(DrawRequests(prng)) : Encode(DrawResponses(prng));
    for (size_t size = 0; size < bytes.size(); ++size) {
      const auto part = bytes.substr(0, size);
      EXPECT_FALSE(i % 2 ? DecodeRequestList(part).ok() : DecodeResponseList(part).ok());
    }
    EXPECT_FALSE(i % 2 ? DecodeRequestList(bytes + "x").ok() : DecodeResponseList(bytes + "x").ok());
  }
}

TEST(Wire, HostileBytesNeverDoHarm) {
  Prng prng(3);
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = i % 2 ? Encode(DrawRequests(prng)) : Encode(DrawResponses(prng));
    for (uint64_t flips = 1 + prng.Below(8); flips > 0; --flips) {
      bytes[prng.Below(bytes.size())] = static_cast<char>(prng.Next());
    }
    // What is still read is as good as what was written.
    if (auto list = DecodeRequestList(bytes); list.ok()) {
      EXPECT_THAT(DecodeRequestList(Encode(*list)), testing::IsOk());
    }
    if (auto list = DecodeResponseList(bytes); list.ok()) {
      EXPECT_THAT(DecodeResponseList(Encode(*list)), testing::IsOk());
    }
  }
}

// Also without a sane beginning, and with a header that gets past the first checks.
TEST(Wire, RandomBytesNeverDoHarm) {
  Prng prng(4);
  const std::string headers[] = {"", Encode(RequestList()).substr(0, 2), Encode(ResponseList()).substr(0, 2)};
  for (int i = 0; i < 30000; ++i) {
    std::string bytes = headers[i % 3];
    for (uint64_t n = prng.Below(200); n > 0; --n) bytes += static_cast<char>(prng.Chance(1, 2) ? 0 : prng.Next());
    if (auto list = DecodeRequestList(bytes); list.ok()) {
      EXPECT_THAT(DecodeRequestList(Encode(*list)), testing::IsOk());
    }
    if (auto list = DecodeResponseList(bytes); list.ok()) {
      EXPECT_THAT(DecodeResponseList(Encode(*list)), testing::IsOk());
    }
  }
}

TEST(Wire, ALengthBeyondTheMessageIsNotBelieved) {
  RequestList list;
  list.failure = "x";
  std::string bytes = Encode(list);
  for (size_t i = 0; i < sizeof(uint64_t); ++i) bytes[3 + i] = static_cast<char>(0xff);
  EXPECT_THAT(DecodeRequestList(bytes),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("failure claims more than there is")));
}

TEST(Wire, WhatNoRankCanRunIsAnError) {
  ResponseList responses;
  responses.responses.emplace_back();
  EXPECT_THAT(DecodeResponseList(Encode(responses)), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("names")));
  RequestList requests;
  requests.requests.emplace_back();
  requests.requests[0].shape = {-1};
  EXPECT_THAT(DecodeRequestList(Encode(requests)), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("shape")));
  requests.requests[0].shape = {int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_THAT(DecodeRequestList(Encode(requests)), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("shape")));
}

TEST(Wire, AnotherVersionIsNamed) {
  std::string bytes = Encode(RequestList());
  bytes[0] = 9;
  EXPECT_THAT(DecodeRequestList(bytes), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("version")));
}

}  // namespace
}  // namespace farandole
