#include "launcher/bench/bench_request.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace farandole {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(BenchRequest, DefaultsAndEveryOption) {
  BenchCommandLine line = ParseBenchCommandLine({"allreduce"});
  ASSERT_TRUE(line.run) << line.text;
  EXPECT_EQ(line.request.np, 2);
  EXPECT_THAT(line.request.bytes, ElementsAre(4, 64 << 10, 1 << 20, 16 << 20));
  line = ParseBenchCommandLine({"reducescatter", "--np", "4", "--bytes", "1K,2g", "--transport", "tcp", "--dtype",
                                "bfloat16", "--algorithm", "ring", "--seconds", "0.1", "--json"});
  ASSERT_TRUE(line.run) << line.text;
  EXPECT_EQ(line.request.op, BenchOp::kReduceScatter);
  EXPECT_THAT(line.request.bytes, ElementsAre(1024, int64_t{2} << 30));
  EXPECT_EQ(line.request.dtype, DType::kBfloat16);
  EXPECT_EQ(line.request.algorithm, Algorithm::kRing);
  EXPECT_TRUE(line.request.json);
  line = ParseBenchCommandLine({"allreduce", "--engine", "--tensors", "100"});
  ASSERT_TRUE(line.run) << line.text;
  EXPECT_EQ(line.request.tensors, 100);
}

TEST(BenchRequest, RefusesWhatMeansNothingAndSaysWhat) {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{}, "OP"},
      {{"scan"}, "scan"},
      {{"allreduce", "--np", "0"}, "--np"},
      {{"allreduce", "--bytes", "4,"}, "--bytes: \"\""},
      {{"allreduce", "--bytes", "-4"}, "--bytes: \"-4\""},
      {{"allreduce", "--bytes", "2000G"}, "2000G"},
      {{"allreduce", "--transport", "rdma"}, "--transport"},
      {{"allreduce", "--tensors", "3"}, "add --engine"},
      {{"broadcast", "--engine"}, "only allreduce"},
  };
  for (const auto& [arguments, words] : cases) {
    const BenchCommandLine line = ParseBenchCommandLine(arguments);
    EXPECT_TRUE(!line.run && line.error);
    EXPECT_THAT(line.text, HasSubstr(words));
  }
}

TEST(BenchRequest, HelpIsNoError) {
  const BenchCommandLine line = ParseBenchCommandLine({"--help"});
  EXPECT_FALSE(line.run || line.error);
  EXPECT_THAT(line.text, HasSubstr("--engine"));
}

}  // namespace
}  // namespace farandole
