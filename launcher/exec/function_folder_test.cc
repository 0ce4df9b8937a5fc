#include "launcher/exec/function_folder.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "driver/core/ids.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tools/base/ids.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::StatusIs;
using ::testing::HasSubstr;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class FunctionFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = absl::StrCat(::testing::TempDir(), "/function.XXXXXX");
    ASSERT_NE(::mkdtemp(path_.data()), nullptr);
  }
  void PutFunction(const std::string& text) { std::ofstream(path_ + "/function", std::ios::binary) << text; }
  std::unique_ptr<FunctionFolder> Opened() {
    PutFunction("f");
    absl::StatusOr<std::unique_ptr<FunctionFolder>> folder = FunctionFolder::Open(path_);
    EXPECT_OK(folder);
    return *std::move(folder);
  }
  bool Exists(const std::string& name) const { return ::access(absl::StrCat(path_, "/", name).c_str(), F_OK) == 0; }

  std::string path_;
};

TEST_F(FunctionFolderTest, TheFunctionIsReadWhole) {
  std::string bytes(3 << 20, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * i >> 3);
  PutFunction(bytes);
  ASSERT_OK_AND_ASSIGN(const auto folder, FunctionFolder::Open(path_));
  EXPECT_TRUE(*folder->function() == bytes);
}

TEST_F(FunctionFolderTest, WhatIsNoFunctionOfThisUserIsRefused) {
  EXPECT_THAT(FunctionFolder::Open(path_ + "/none"), StatusIs(absl::StatusCode::kNotFound, HasSubstr(path_ + "/none")));
  EXPECT_THAT(FunctionFolder::Open(path_), StatusIs(absl::StatusCode::kNotFound, HasSubstr(path_ + "/function")));
  ASSERT_EQ(::mkfifo((path_ + "/function").c_str(), 0600), 0);
  EXPECT_THAT(FunctionFolder::Open(path_),
              StatusIs(absl::StatusCode::kInvalidArgument, path_ + "/function is no regular file"));
  ASSERT_EQ(::unlink((path_ + "/function").c_str()), 0);
  ASSERT_EQ(::symlink("/etc/hostname", (path_ + "/function").c_str()), 0);
  EXPECT_FALSE(FunctionFolder::Open(path_).ok());
  ASSERT_EQ(::unlink((path_ + "/function").c_str()), 0);
  PutFunction("12345");
  EXPECT_THAT(FunctionFolder::Open(path_, 4),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("has 5 bytes, more than 4")));
  EXPECT_OK(FunctionFolder::Open(path_, 5));
  ASSERT_EQ(::chmod(path_.c_str(), 0770), 0);
  EXPECT_THAT(FunctionFolder::Open(path_), StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr(path_)));
}

TEST_F(FunctionFolderTest, ResultsAreFilesByRankForThisUserAlone) {
  const auto folder = Opened();
  EXPECT_OK(folder->Append(11, "a"));
  EXPECT_OK(folder->Append(0, std::string("\0\n", 2)));
  EXPECT_OK(folder->Append(11, "b"));
  folder->End(11);
  EXPECT_EQ(ReadFile(path_ + "/result.11"), "ab");
  EXPECT_EQ(ReadFile(path_ + "/result.0"), std::string("\0\n", 2));
  EXPECT_FALSE(Exists("result.1"));
  struct stat found;
  ASSERT_EQ(::stat((path_ + "/result.11").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600u);
}

TEST_F(FunctionFolderTest, AResultThatCannotBeWrittenIsToldOnceAndGone) {
  const auto folder = Opened();
  std::ofstream(path_ + "/result.1") << "of something else";
  EXPECT_THAT(folder->Append(1, "a"), StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr(path_ + "/result.1")));
  EXPECT_OK(folder->Append(1, "b"));
  EXPECT_EQ(ReadFile(path_ + "/result.1"), "of something else");

  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit little{4, before.rlim_max};
  EXPECT_OK(folder->Append(0, "123"));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &little), 0);
  const absl::Status full = folder->Append(0, "456");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_THAT(full.message(), HasSubstr("write " + path_ + "/result.0: File too large"));
  EXPECT_OK(folder->Append(0, "456"));
  EXPECT_FALSE(Exists("result.0")) << "half a result is none";
}

TEST_F(FunctionFolderTest, TheVerdictNamesTheFirstFailure) {
  Verdict verdict;
  verdict.exit_code = 143;
  verdict.reason = "rank 2 on host b\xff was ended by SIGTERM";
  verdict.has_first_failure = true;
  verdict.first_failure.worker = {SlotId{"b", 1}, Incarnation(7)};
  verdict.first_failure.rank = 2;
  verdict.first_failure.status = ExitStatus{0, SIGTERM};
  EXPECT_OK(Opened()->WriteVerdict(verdict));
  const nlohmann::json json = nlohmann::json::parse(ReadFile(path_ + "/verdict"));
  EXPECT_EQ(json, nlohmann::json::parse(R"({"exit_code": 143,
      "reason": "rank 2 on host b\ufffd was ended by SIGTERM",
      "first_failure": {"rank": 2, "host": "b", "exit_code": 143}})"));
  EXPECT_FALSE(Exists("verdict.new"));
}

TEST_F(FunctionFolderTest, TheVerdictOfSuccessAndOfNoWorkersFailure) {
  const auto folder = Opened();
  EXPECT_OK(folder->WriteVerdict(Verdict()));
  EXPECT_EQ(ReadFile(path_ + "/verdict"), "{\"exit_code\":0,\"reason\":\"\"}\n");
  Verdict failed;
  failed.exit_code = 1;
  EXPECT_OK(folder->WriteVerdict(failed));
  EXPECT_EQ(ReadFile(path_ + "/verdict"), "{\"exit_code\":1,\"reason\":\"the job failed\"}\n");
}

}  // namespace
}  // namespace farandole
