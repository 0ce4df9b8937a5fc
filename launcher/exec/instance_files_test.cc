#include "launcher/exec/instance_files.h"

#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::StatusIs;
using ::testing::HasSubstr;

constexpr OutputStream kOut = OutputStream::kStdout, kErr = OutputStream::kStderr;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

WorkerId Worker(uint64_t incarnation) { return {{"a", 0}, Incarnation(incarnation)}; }

class InstanceFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = absl::StrCat(::testing::TempDir(), "/instances.XXXXXX");
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
  }
  std::string folder_;
};

TEST_F(InstanceFilesTest, ARestartedWorkerHasNewFilesAndTheOldOnesAreComplete) {
  ASSERT_OK_AND_ASSIGN(const auto files, InstanceFiles::Create(folder_ + "/new/logs", "job1"));
  EXPECT_OK(files->Write(Worker(1), kOut, "first life\n"));
  files->End(Worker(1));
  EXPECT_OK(files->Write(Worker(2), kOut, "second life\n"));
  EXPECT_OK(files->Write(Worker(2), kErr, absl::string_view("\0\xff raw", 6)));
  EXPECT_EQ(ReadFile(folder_ + "/new/logs/job1/a.0.0000000000000001.stdout"), "first life\n");
  EXPECT_EQ(ReadFile(folder_ + "/new/logs/job1/a.0.0000000000000002.stdout"), "second life\n");
  EXPECT_EQ(ReadFile(folder_ + "/new/logs/latest/" + InstanceFiles::NameOf(Worker(2), kErr)),
            std::string("\0\xff raw", 6));
}

TEST_F(InstanceFilesTest, TheIndexSaysWhoHadWhichRankWhen) {
  ASSERT_OK_AND_ASSIGN(const auto files, InstanceFiles::Create(folder_, "job1"));
  Placement place;
  place.rank = 3;
  place.local_rank = 1;
  EXPECT_OK(files->Place(Generation(), {{Worker(1), place}}));
  place.rank = 2;
  EXPECT_OK(files->Place(Generation(7), {{Worker(1), place}}));
  const std::vector<std::string> lines =
      absl::StrSplit(ReadFile(folder_ + "/job1/index.jsonl"), '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 2u);
  const auto line = nlohmann::json::parse(lines[1]);
  EXPECT_EQ(line["generation"], 7);
  EXPECT_EQ(line["rank"], 2);
  EXPECT_EQ(line["host"], "a");
  EXPECT_EQ(line["local_rank"], 1);
  EXPECT_EQ(line["stdout"], InstanceFiles::NameOf(Worker(1), kOut));
  EXPECT_EQ(nlohmann::json::parse(lines[0])["generation"], 0);
}

TEST_F(InstanceFilesTest, AnotherJobHasAFolderOfItsOwnAndTheSameOneIsRefused) {
  ASSERT_OK_AND_ASSIGN(const auto one, InstanceFiles::Create(folder_, "job1"));
  EXPECT_OK(one->Write(Worker(1), kOut, "one"));
  ASSERT_OK_AND_ASSIGN(const auto two, InstanceFiles::Create(folder_, "job2"));
  EXPECT_OK(two->Write(Worker(1), kOut, "two"));
  const std::string name = "/" + InstanceFiles::NameOf(Worker(1), kOut);
  EXPECT_EQ(ReadFile(folder_ + "/job1" + name), "one");
  EXPECT_EQ(ReadFile(folder_ + "/latest" + name), "two");
  EXPECT_THAT(InstanceFiles::Create(folder_, "job1"),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("make folder " + folder_ + "/job1")));
}

TEST_F(InstanceFilesTest, AFileThatCannotBeWrittenIsToldOnce) {
  ASSERT_OK_AND_ASSIGN(const auto files, InstanceFiles::Create(folder_, "job1"));
  const std::string path = absl::StrCat(folder_, "/job1/", InstanceFiles::NameOf(Worker(1), kOut));
  ASSERT_EQ(::symlink("/nowhere/file", path.c_str()), 0);
  EXPECT_THAT(files->Write(Worker(1), kOut, "a"), StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr(path)));
  EXPECT_OK(files->Write(Worker(1), kOut, "b"));
}

}  // namespace
}  // namespace farandole
