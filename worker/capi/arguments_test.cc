#include "worker/capi/arguments.h"

#include <cmath>
#include <cstddef>
#include <cstring>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/clock.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::IsOkAndHolds;
using ::farandole::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

constexpr int64_t kShape[] = {2, 3};
float buffer[6];

fdl_tensor Tensor() {
  fdl_tensor tensor{};
  tensor.struct_size = sizeof tensor;
  tensor.input = buffer;
  tensor.output = buffer;
  tensor.shape = kShape;
  tensor.dims = 2;
  tensor.dtype = FDL_FLOAT32;
  return tensor;
}

absl::StatusOr<std::vector<Request>> OneAllReduce(const fdl_tensor& tensor, const fdl_reduce_args& args) {
  const char* name = "a";
  return ToAllReduces(&name, &tensor, 1, &args);
}

constexpr fdl_reduce_args kAverage = {sizeof(fdl_reduce_args), FDL_AVERAGE, 2.0, 0.5};

TEST(CApiArguments, AllReduceCarriesEverything) {
  ASSERT_OK_AND_ASSIGN(const auto requests, OneAllReduce(Tensor(), kAverage));
  ASSERT_THAT(requests, SizeIs(1));
  const Request& request = requests[0];
  EXPECT_EQ(request.kind, OperationKind::kAllReduce);
  EXPECT_EQ(request.name, "a");
  EXPECT_EQ(request.dtype, DType::kFloat32);
  EXPECT_THAT(request.shape, ElementsAre(2, 3));
  EXPECT_EQ(request.op, ReduceOp::kAverage);
  EXPECT_EQ(request.prescale, 2.0);
  EXPECT_EQ(request.postscale, 0.5);
  EXPECT_EQ(request.input, buffer);
  EXPECT_EQ(request.output, buffer);
}

TEST(CApiArguments, OtherOperations) {
  const fdl_tensor tensor = Tensor();
  ASSERT_OK_AND_ASSIGN(const Request gather, ToAllGather("g", &tensor));
  EXPECT_EQ(gather.kind, OperationKind::kAllGather);
  ASSERT_OK_AND_ASSIGN(const Request broadcast, ToBroadcast("b", &tensor, 3));
  EXPECT_EQ(broadcast.kind, OperationKind::kBroadcast);
  EXPECT_EQ(broadcast.root, 3);
  ASSERT_OK_AND_ASSIGN(const Request barrier, ToBarrier("x"));
  EXPECT_EQ(barrier.kind, OperationKind::kBarrier);
  EXPECT_EQ(barrier.name, "x");
}

TEST(CApiArguments, AScalarNeedsNoShape) {
  fdl_tensor tensor = Tensor();
  tensor.dims = 0;
  tensor.shape = nullptr;
  ASSERT_OK_AND_ASSIGN(const auto requests, OneAllReduce(tensor, kAverage));
  EXPECT_THAT(requests[0].shape, IsEmpty());
}

TEST(CApiArguments, AnOlderReduceArgsHasNoScales) {
  fdl_reduce_args args = kAverage;
  args.struct_size = offsetof(fdl_reduce_args, op) + sizeof(args.op);
  ASSERT_OK_AND_ASSIGN(const auto requests, OneAllReduce(Tensor(), args));
  EXPECT_EQ(requests[0].prescale, 1.0);
  EXPECT_EQ(requests[0].postscale, 1.0);
}

TEST(CApiArguments, NewerStructsAreReadAsFarAsTheyAreKnown) {
  struct NewerTensor {
    fdl_tensor known;
    int64_t stream;
  };
  const int64_t other_shape[] = {5};
  NewerTensor tensors[2] = {{Tensor(), -1}, {Tensor(), -1}};
  tensors[1].known.shape = other_shape;
  tensors[1].known.dims = 1;
  for (NewerTensor& tensor : tensors) tensor.known.struct_size = sizeof(NewerTensor);
  const char* names[] = {"a", "b"};
  ASSERT_OK_AND_ASSIGN(const auto requests, ToAllReduces(names, &tensors[0].known, 2, &kAverage));
  ASSERT_THAT(requests, SizeIs(2));
  EXPECT_THAT(requests[0].shape, ElementsAre(2, 3));
  EXPECT_THAT(requests[1].shape, ElementsAre(5));
}

TEST(CApiArguments, TensorsOfOneCallHaveOneSize) {
  fdl_tensor tensors[2] = {Tensor(), Tensor()};
  tensors[1].struct_size += 8;
  const char* names[] = {"a", "b"};
  EXPECT_THAT(ToAllReduces(names, tensors, 2, &kAverage), StatusIs(kInvalid, HasSubstr("number 1")));
}

TEST(CApiArguments, MeaninglessTensorsAreRefused) {
  fdl_tensor tensor = Tensor();
  tensor.struct_size = 0;
  EXPECT_THAT(ToAllGather("g", &tensor), StatusIs(kInvalid, HasSubstr("struct_size is 0")));
  tensor = Tensor();
  tensor.dtype = 99;
  EXPECT_THAT(ToAllGather("g", &tensor), StatusIs(kInvalid, HasSubstr("dtype 99")));
  tensor = Tensor();
  tensor.shape = nullptr;
  EXPECT_THAT(ToAllGather("g", &tensor), StatusIs(kInvalid, HasSubstr("NULL")));
  tensor = Tensor();
  tensor.dims = -1;
  EXPECT_THAT(ToAllGather("g", &tensor), StatusIs(kInvalid, HasSubstr("-1")));
  const int64_t negative[] = {2, -3};
  tensor = Tensor();
  tensor.shape = negative;
  EXPECT_THAT(ToAllGather("g", &tensor), StatusIs(kInvalid, HasSubstr("dimension 1 is -3")));
  const int64_t huge[] = {int64_t{1} << 40, int64_t{1} << 40};
  tensor.shape = huge;
  EXPECT_THAT(ToAllGather("g", &tensor), StatusIs(kInvalid, HasSubstr("dimension 1")));
  EXPECT_THAT(ToAllGather("g", nullptr), StatusIs(kInvalid, HasSubstr("NULL")));
}

TEST(CApiArguments, NamesAndCountsAreNeeded) {
  const fdl_tensor tensor = Tensor();
  EXPECT_THAT(ToAllGather(nullptr, &tensor), StatusIs(kInvalid, HasSubstr("name")));
  EXPECT_THAT(ToBroadcast("", &tensor, 0), StatusIs(kInvalid, HasSubstr("name")));
  EXPECT_THAT(ToBarrier(nullptr), StatusIs(kInvalid, HasSubstr("name")));
  const char* name = "a";
  EXPECT_THAT(ToAllReduces(&name, &tensor, 0, &kAverage), StatusIs(kInvalid));
  EXPECT_THAT(ToAllReduces(nullptr, &tensor, 1, &kAverage), StatusIs(kInvalid));
  EXPECT_THAT(ToAllReduces(&name, nullptr, 1, &kAverage), StatusIs(kInvalid));
  EXPECT_THAT(ToAllReduces(&name, &tensor, 1, nullptr), StatusIs(kInvalid));
}

TEST(CApiArguments, ReductionsThatAreNotThere) {
  fdl_reduce_args args = kAverage;
  args.op = 77;
  EXPECT_THAT(OneAllReduce(Tensor(), args), StatusIs(kInvalid, HasSubstr("op 77")));
}

TEST(CApiArguments, ARequestOfEachKindAndWhatIsWrongWithOne) {
  const int64_t shape[] = {4}, splits[] = {1, 3};
  float memory[4] = {};
  fdl_request request = {};
  request.struct_size = sizeof request;
  request.kind = FDL_ALLTOALL;
  request.name = "a";
  request.input = memory;
  request.shape = shape;
  request.dims = 1;
  request.dtype = FDL_FLOAT32;
  request.splits = splits;
  request.splits_count = 2;
  request.priority = 5;
  request.process_set = 7;
  ASSERT_OK_AND_ASSIGN(KnownRequests known, ToRequests(&request, 1));
  EXPECT_EQ(known.process_set, 7);
  EXPECT_EQ(known.requests[0].kind, OperationKind::kAllToAll);
  EXPECT_EQ(known.requests[0].splits, (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(known.requests[0].priority, 5);

  request.kind = FDL_REDUCESCATTER;
  request.op = FDL_MAX;
  request.prescale = 0.5;
  ASSERT_OK_AND_ASSIGN(known, ToRequests(&request, 1));
  EXPECT_EQ(known.requests[0].op, ReduceOp::kMax);
  EXPECT_EQ(known.requests[0].prescale, 0.5);
  EXPECT_TRUE(known.requests[0].splits.empty());

  request.kind = FDL_JOIN;
  request.name = nullptr;
  EXPECT_OK(ToRequests(&request, 1));
  request.kind = FDL_SEND;
  EXPECT_THAT(ToRequests(&request, 1), StatusIs(kInvalid, HasSubstr("name")));
  request.kind = 4;
  EXPECT_THAT(ToRequests(&request, 1), StatusIs(kInvalid, HasSubstr("kind 4")));
  EXPECT_THAT(ToRequests(&request, 0), StatusIs(kInvalid));
  EXPECT_THAT(ToRequests(nullptr, 1), StatusIs(kInvalid));
  request.struct_size = 8;
  EXPECT_THAT(ToRequests(&request, 1), StatusIs(kInvalid, HasSubstr("struct_size")));
}

TEST(CApiArguments, Deadlines) {
  EXPECT_THAT(ToDeadline(-1.0), IsOkAndHolds(Instant::Infinite()));
  EXPECT_THAT(ToDeadline(1e300), IsOkAndHolds(Instant::Infinite()));
  EXPECT_THAT(ToDeadline(std::nan("")), StatusIs(kInvalid));
  const Instant before = Now();
  ASSERT_OK_AND_ASSIGN(const Instant deadline, ToDeadline(2.0));
  EXPECT_GE(deadline, before + absl::Seconds(2));
  EXPECT_LE(deadline, Now() + absl::Seconds(2));
}

TEST(CApiArguments, InitWaitsForEverUnlessTold) {
  EXPECT_THAT(ToDeadline(nullptr), IsOkAndHolds(Instant::Infinite()));
  fdl_init_args args = {sizeof(fdl_init_args), 0.0};
  ASSERT_OK_AND_ASSIGN(const Instant deadline, ToDeadline(&args));
  EXPECT_LE(deadline, Now());
  args.struct_size = sizeof args.struct_size;  // an older one
  EXPECT_THAT(ToDeadline(&args), IsOkAndHolds(Instant::Infinite()));
  args.struct_size = 0;
  EXPECT_THAT(ToDeadline(&args), StatusIs(kInvalid));
}

}  // namespace
}  // namespace farandole
