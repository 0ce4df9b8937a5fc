#include "launcher/exec/check_build.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(CheckBuild, IsTheOriginalsTableWithOursAfterIt) {
  PythonFindings found;
  found.torch = true;
  EXPECT_EQ(CheckBuildText("1.2", found, false),
            "Horovod v1.2:\n"
            "\n"
            "Available Frameworks:\n"
            "    [ ] TensorFlow\n"
            "    [X] PyTorch\n"
            "    [ ] MXNet\n"
            "\n"
            "Available Controllers:\n"
            "    [ ] MPI\n"
            "    [X] Gloo\n"
            "\n"
            "Available Tensor Operations:\n"
            "    [ ] NCCL\n"
            "    [ ] DDL\n"
            "    [ ] CCL\n"
            "    [ ] MPI\n"
            "    [X] Gloo\n"
            "\n"
            "Farandole's own transports, which answer to the name Gloo:\n"
            "    [X] shared memory\n"
            "    [X] TCP\n");
}

TEST(CheckBuild, VerboseSaysWhyNoFrameworkWasFound) {
  const std::string text = CheckBuildText("1.2", absl::NotFoundError("execute python3: not there"), true);
  EXPECT_THAT(text, StartsWith("\nNo framework was found: execute python3: not there\n\nHorovod v1.2:\n"));
  EXPECT_THAT(text, HasSubstr("[ ] PyTorch"));
}

// A python3 that is a script of ours, first in PATH.
class AskPythonTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = absl::StrCat(::testing::TempDir(), "/python.XXXXXX");
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
    old_path_ = ::getenv("PATH");
    ::setenv("PATH", absl::StrCat(folder_, ":", old_path_).c_str(), 1);
  }
  void TearDown() override { ::setenv("PATH", old_path_.c_str(), 1); }

  void Make(const std::string& script) {
    const std::string path = absl::StrCat(folder_, "/python3");
    std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
    ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
  }

  std::string folder_, old_path_;
};

TEST_F(AskPythonTest, TakesItsAnswer) {
  Make("echo noise; echo found torch; echo found mxnet");
  ASSERT_OK_AND_ASSIGN(const PythonFindings found, AskPython(absl::Seconds(30)));
  EXPECT_FALSE(found.tensorflow);
  EXPECT_TRUE(found.torch);
  EXPECT_TRUE(found.mxnet);
}

TEST_F(AskPythonTest, OneThatHangsOrFailsOrIsNotThereIsAnError) {
  for (const char* script : {"exec cat /dev/zero > /dev/null", "exec tail -f /dev/null"}) {
    Make(script);
    EXPECT_THAT(AskPython(absl::Milliseconds(50)), StatusIs(absl::StatusCode::kDeadlineExceeded)) << script;
  }
  Make("exit 3");
  EXPECT_THAT(AskPython(absl::Seconds(30)), StatusIs(absl::StatusCode::kUnknown));
  ::setenv("PATH", "/nowhere", 1);
  EXPECT_THAT(AskPython(absl::Seconds(30)), StatusIs(absl::StatusCode::kNotFound, HasSubstr("execute python3: ")));
}

// The question itself, to whatever Python this machine has.
TEST(AskPython, ARealOneUnderstandsTheQuestion) {
  const absl::StatusOr<PythonFindings> found = AskPython(absl::Seconds(60));
  if (absl::IsNotFound(found.status())) GTEST_SKIP() << "no python3 here";
  EXPECT_OK(found);
}

}  // namespace
}  // namespace farandole
