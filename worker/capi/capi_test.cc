// The C interface in one process: a group of one. Several processes: job_test.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/capi/farandole.h"

namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kLong = 60.0;
constexpr int64_t kShape[] = {3};
constexpr fdl_reduce_args kSum = {sizeof(fdl_reduce_args), FDL_SUM, 1.0, 1.0};

fdl_tensor Tensor(const float* input, float* output) {
  fdl_tensor tensor{};
  tensor.struct_size = sizeof tensor;
  tensor.input = input;
  tensor.output = output;
  tensor.shape = kShape;
  tensor.dims = 1;
  tensor.dtype = FDL_FLOAT32;
  return tensor;
}

std::string LastError() { return fdl_last_error(); }

class CApi : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(fdl_init(nullptr), FDL_OK) << LastError(); }
  void TearDown() override { EXPECT_EQ(fdl_shutdown(), FDL_OK); }

  fdl_code Finish(fdl_handle handle) {
    const fdl_code code = fdl_wait(handle, kLong);
    EXPECT_EQ(fdl_poll(handle), 1);
    EXPECT_EQ(fdl_release(handle), FDL_OK);
    return code;
  }

  float input_[3] = {1, -2, 3};
  float output_[3] = {};
  fdl_handle handle_ = 0;
};

TEST(CApiOutside, NothingWorksBeforeInitAndItSaysSo) {
  ASSERT_EQ(fdl_is_initialized(), 0);
  for (const auto place :
       {fdl_rank, fdl_size, fdl_local_rank, fdl_local_size, fdl_cross_rank, fdl_cross_size, fdl_is_homogeneous}) {
    EXPECT_EQ(place(), -1);
    EXPECT_THAT(LastError(), HasSubstr("not initialised"));
  }
  float data[3] = {};
  const fdl_tensor tensor = Tensor(data, data);
  fdl_handle handle = 7;
  EXPECT_EQ(fdl_allreduce("x", &tensor, &kSum, &handle), FDL_FAILED_PRECONDITION);
  EXPECT_EQ(fdl_allgather("x", &tensor, &handle), FDL_FAILED_PRECONDITION);
  EXPECT_EQ(fdl_broadcast("x", &tensor, 0, &handle), FDL_FAILED_PRECONDITION);
  EXPECT_EQ(fdl_barrier("x", &handle), FDL_FAILED_PRECONDITION);
  EXPECT_EQ(handle, 7u);
  EXPECT_EQ(fdl_shutdown(), FDL_OK);
}

TEST(CApiOutside, GarbageInTheEnvironmentIsNamed) {
  ::setenv("HOROVOD_FUSION_THRESHOLD", "lots", 1);
  EXPECT_EQ(fdl_init(nullptr), FDL_INVALID_ARGUMENT);
  EXPECT_THAT(LastError(), AllOf(HasSubstr("HOROVOD_FUSION_THRESHOLD"), HasSubstr("lots")));
  EXPECT_EQ(fdl_is_initialized(), 0);
  ::unsetenv("HOROVOD_FUSION_THRESHOLD");
  EXPECT_EQ(fdl_init(nullptr), FDL_OK);
  EXPECT_EQ(fdl_shutdown(), FDL_OK);
}

TEST(CApiOutside, AnAgentThatIsNotThereIsNamed) {
  ::setenv("FARANDOLE_AGENT", "unix-abstract:farandole-nobody", 1);
  ::setenv("FARANDOLE_WORKER", "00000000000000aa", 1);
  EXPECT_EQ(fdl_init(nullptr), FDL_UNAVAILABLE);
  EXPECT_THAT(LastError(), HasSubstr("farandole-nobody"));
  EXPECT_EQ(fdl_is_initialized(), 0);
  ::unsetenv("FARANDOLE_AGENT");
  ::unsetenv("FARANDOLE_WORKER");
}

TEST_F(CApi, InitIsRepeatable) {
  EXPECT_EQ(fdl_init(nullptr), FDL_OK);
  EXPECT_EQ(fdl_is_initialized(), 1);
  EXPECT_EQ(fdl_shutdown(), FDL_OK);
  EXPECT_EQ(fdl_shutdown(), FDL_OK);
  EXPECT_EQ(fdl_is_initialized(), 0);
  EXPECT_EQ(fdl_init(nullptr), FDL_OK);
  EXPECT_EQ(fdl_rank(), 0);
}

TEST_F(CApi, ReducesWithScales) {
  const fdl_tensor tensor = Tensor(input_, output_);
  const fdl_reduce_args args = {sizeof args, FDL_AVERAGE, 2.0, 5.0};
  ASSERT_EQ(fdl_allreduce("a", &tensor, &args, &handle_), FDL_OK) << LastError();
  EXPECT_EQ(Finish(handle_), FDL_OK) << LastError();
  EXPECT_THAT(output_, ElementsAre(10, -20, 30));
  EXPECT_THAT(input_, ElementsAre(1, -2, 3));
}

TEST_F(CApi, ReducesInPlaceInAGroup) {
  std::vector<std::vector<float>> data(40, {1, 2, 3});
  std::vector<std::string> words;
  std::vector<const char*> names;
  std::vector<fdl_tensor> tensors;
  for (size_t i = 0; i < data.size(); ++i) words.push_back("t" + std::to_string(i));
  for (size_t i = 0; i < data.size(); ++i) {
    names.push_back(words[i].c_str());
    tensors.push_back(Tensor(data[i].data(), data[i].data()));
  }
  std::vector<fdl_handle> handles(data.size());
  ASSERT_EQ(fdl_grouped_allreduce(names.data(), tensors.data(), 40, &kSum, handles.data()), FDL_OK) << LastError();
  for (const fdl_handle handle : handles) EXPECT_EQ(Finish(handle), FDL_OK);
  for (const auto& each : data) EXPECT_THAT(each, ElementsAre(1, 2, 3));
}

TEST_F(CApi, GathersBroadcastsAndMeets) {
  const fdl_tensor tensor = Tensor(input_, output_);
  ASSERT_EQ(fdl_allgather("g", &tensor, &handle_), FDL_OK) << LastError();
  ASSERT_EQ(fdl_wait(handle_, kLong), FDL_OK) << LastError();
  const void* data = nullptr;
  int64_t bytes = 0;
  const int64_t* first_dims = nullptr;
  ASSERT_EQ(fdl_gathered(handle_, &data, &bytes, &first_dims), FDL_OK);
  ASSERT_EQ(bytes, static_cast<int64_t>(sizeof input_));
  EXPECT_EQ(std::memcmp(data, input_, sizeof input_), 0);
  EXPECT_EQ(first_dims[0], 3);
  EXPECT_EQ(fdl_gathered(handle_, nullptr, nullptr, nullptr), FDL_OK);
  EXPECT_EQ(fdl_release(handle_), FDL_OK);

  ASSERT_EQ(fdl_broadcast("b", &tensor, 0, &handle_), FDL_OK) << LastError();
  EXPECT_EQ(Finish(handle_), FDL_OK);
  EXPECT_THAT(output_, ElementsAre(1, -2, 3));
  ASSERT_EQ(fdl_barrier("m", &handle_), FDL_OK);
  EXPECT_EQ(Finish(handle_), FDL_OK);
}

TEST_F(CApi, AGatheredResultOutlivesShutdown) {
  const fdl_tensor tensor = Tensor(input_, nullptr);
  ASSERT_EQ(fdl_allgather("g", &tensor, &handle_), FDL_OK);
  ASSERT_EQ(fdl_wait(handle_, kLong), FDL_OK);
  EXPECT_EQ(fdl_shutdown(), FDL_OK);
  const void* data = nullptr;
  ASSERT_EQ(fdl_gathered(handle_, &data, nullptr, nullptr), FDL_OK);
  EXPECT_EQ(std::memcmp(data, input_, sizeof input_), 0);
  EXPECT_EQ(fdl_release(handle_), FDL_OK);
}

TEST_F(CApi, BadArgumentsBeginNothing) {
  fdl_tensor tensor = Tensor(input_, output_);
  handle_ = 5;
  EXPECT_EQ(fdl_allreduce(nullptr, &tensor, &kSum, &handle_), FDL_INVALID_ARGUMENT);
  EXPECT_EQ(fdl_allreduce("a", nullptr, &kSum, &handle_), FDL_INVALID_ARGUMENT);
  EXPECT_EQ(fdl_allreduce("a", &tensor, nullptr, &handle_), FDL_INVALID_ARGUMENT);
  EXPECT_EQ(fdl_allreduce("a", &tensor, &kSum, nullptr), FDL_INVALID_ARGUMENT);
  EXPECT_EQ(fdl_broadcast("a", &tensor, 1, &handle_), FDL_INVALID_ARGUMENT);
  EXPECT_EQ(fdl_broadcast("a", &tensor, -1, &handle_), FDL_INVALID_ARGUMENT);
  tensor.dtype = 42;
  EXPECT_EQ(fdl_allgather("a", &tensor, &handle_), FDL_INVALID_ARGUMENT);
  EXPECT_THAT(LastError(), HasSubstr("42"));
  tensor = Tensor(nullptr, output_);
  EXPECT_EQ(fdl_allreduce("a", &tensor, &kSum, &handle_), FDL_INVALID_ARGUMENT);
  tensor = Tensor(input_, nullptr);
  EXPECT_EQ(fdl_allreduce("a", &tensor, &kSum, &handle_), FDL_INVALID_ARGUMENT);
  EXPECT_EQ(handle_, 5u);
}

TEST_F(CApi, AnOlderCallerIsUnderstood) {
  const fdl_tensor tensor = Tensor(input_, output_);
  fdl_reduce_args args = {offsetof(fdl_reduce_args, op) + sizeof(int32_t), FDL_SUM, 100.0, 100.0};
  ASSERT_EQ(fdl_allreduce("a", &tensor, &args, &handle_), FDL_OK) << LastError();
  EXPECT_EQ(Finish(handle_), FDL_OK);
  EXPECT_THAT(output_, ElementsAre(1, -2, 3));  // the scales are beyond its struct
}

TEST_F(CApi, UnknownHandles) {
  for (const fdl_handle handle : {fdl_handle{0}, fdl_handle{1} << 60}) {
    EXPECT_EQ(fdl_poll(handle), -1);
    EXPECT_EQ(fdl_wait(handle, 0.0), FDL_NOT_FOUND);
    EXPECT_EQ(fdl_gathered(handle, nullptr, nullptr, nullptr), FDL_NOT_FOUND);
    EXPECT_EQ(fdl_release(handle), FDL_NOT_FOUND);
  }
}

TEST_F(CApi, LastErrorIsTheThreadsOwn) {
  EXPECT_EQ(fdl_wait(0, 0.0), FDL_NOT_FOUND);
  const std::string mine = LastError();
  std::string others = "not set";
  std::thread([&] { others = LastError(); }).join();
  EXPECT_EQ(others, "");
  EXPECT_EQ(LastError(), mine);
}

// Runs `check` in a forked child that then ends as programs do; returns its exit code.
template <typename Check>
int InChild(Check check) {
  const pid_t child = ::fork();
  if (child == 0) std::exit(check() ? 0 : 1);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  return WEXITSTATUS(status);
}

TEST_F(CApi, AForkedChildIsRefusedAndEndsCleanly) {
  const fdl_tensor tensor = Tensor(input_, output_);
  ASSERT_EQ(fdl_barrier("before", &handle_), FDL_OK);
  EXPECT_EQ(InChild([&] {
              fdl_handle handle = 0;
              return fdl_is_initialized() == 0 && fdl_rank() == -1 && fdl_size() == -1 && fdl_local_rank() == -1 &&
                     fdl_local_size() == -1 && fdl_cross_rank() == -1 && fdl_cross_size() == -1 &&
                     fdl_is_homogeneous() == -1 && fdl_init(nullptr) == FDL_FAILED_PRECONDITION &&
                     LastError().find("forked") != std::string::npos &&
                     fdl_allreduce("x", &tensor, &kSum, &handle) == FDL_FAILED_PRECONDITION &&
                     fdl_allgather("x", &tensor, &handle) == FDL_FAILED_PRECONDITION &&
                     fdl_broadcast("x", &tensor, 0, &handle) == FDL_FAILED_PRECONDITION &&
                     fdl_barrier("x", &handle) == FDL_FAILED_PRECONDITION && fdl_poll(handle_) == -1 &&
                     fdl_wait(handle_, kLong) == FDL_FAILED_PRECONDITION &&
                     fdl_gathered(handle_, nullptr, nullptr, nullptr) == FDL_FAILED_PRECONDITION &&
                     fdl_release(handle_) == FDL_FAILED_PRECONDITION && fdl_abi_version() == FDL_ABI_VERSION &&
                     fdl_shutdown() == FDL_OK;
            }),
            0);
  EXPECT_EQ(Finish(handle_), FDL_OK);  // the parent goes on
}

TEST_F(CApi, AGrandchildIsRefusedAsWell) {
  EXPECT_EQ(InChild([] { return InChild([] { return fdl_rank() == -1 && fdl_shutdown() == FDL_OK; }) == 0; }), 0);
}

}  // namespace
