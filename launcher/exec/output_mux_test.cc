#include "launcher/exec/output_mux.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launcher/exec/function_folder.h"
#include "tools/base/testing/status_matchers.h"
#include "tools/base/unique_fd.h"

namespace farandole {
namespace {

using ::farandole::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

constexpr OutputStream kOut = OutputStream::kStdout, kErr = OutputStream::kStderr;

WorkerId Worker(int slot) { return {{"a", slot}, Incarnation(static_cast<uint64_t>(slot) + 1)}; }

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Pipe {
  Pipe() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    read.reset(ends[0]);
    write.reset(ends[1]);
  }
  std::string ReadToEnd() {
    write.reset();
    std::string text;
    char buffer[65536];
    for (ssize_t size; (size = ::read(read.get(), buffer, sizeof buffer)) > 0;) text.append(buffer, size);
    return text;
  }
  UniqueFd read, write;
};

class OutputMuxTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::signal(SIGPIPE, SIG_IGN);
    folder_ = absl::StrCat(::testing::TempDir(), "/mux.XXXXXX");
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
    options_.stdout_fd = out_.write.get();
    options_.stderr_fd = err_.write.get();
  }
  void Make() { ASSERT_OK_AND_ASSIGN(mux_, OutputMux::Create(options_)); }

  std::string folder_;
  Pipe out_, err_;
  OutputMuxOptions options_;
  std::unique_ptr<OutputMux> mux_;  // ends before its descriptors
};

TEST_F(OutputMuxTest, StdoutStaysStdoutAndStderrStderr) {
  Make();
  mux_->Write(Worker(0), 0, kOut, "a\n");
  mux_->Write(Worker(1), 1, kErr, "b\n");
  mux_->Note("farandole: c");
  mux_->Write(Worker(0), 0, kOut, "d");
  mux_->End(Worker(0), 0);
  mux_ = nullptr;
  EXPECT_EQ(out_.ReadToEnd(), "[0]<stdout>:a\n[0]<stdout>:d");
  EXPECT_EQ(err_.ReadToEnd(), "[1]<stderr>:b\nfarandole: c\n");
}

TEST_F(OutputMuxTest, TimestampsStandDirectlyBeforeThePrefix) {
  ASSERT_OK_AND_ASSIGN(options_.prefix, OutputTemplate::Parse("{time}[{rank}]<{stream}>:"));
  Make();
  mux_->Write(Worker(0), 0, kOut, "a\n");
  mux_ = nullptr;
  EXPECT_THAT(out_.ReadToEnd(), MatchesRegex("[A-Z][a-z]+ [A-Z][a-z]+ [ 0-9]+:[0-9]+:[0-9]+ [0-9]+.0.<stdout>:a\n"));
}

TEST_F(OutputMuxTest, ThePrefixCanSayWhereALineComesFrom) {
  ASSERT_OK_AND_ASSIGN(options_.prefix, OutputTemplate::Parse("{host}/{local_rank} gen {gen}: "));
  Make();
  mux_->Write(Worker(1), 3, kOut, "a\n");
  mux_->Place(Generation(2), {});
  mux_->Write(Worker(1), 3, kOut, "b\n");
  mux_ = nullptr;
  EXPECT_EQ(out_.ReadToEnd(), "a/1 gen 0: a\na/1 gen 2: b\n");
}

TEST_F(OutputMuxTest, EachInstanceHasFilesOfItsOwnWithoutPrefixes) {
  options_.instance_directory = folder_;
  options_.job = "j1";
  Make();
  mux_->Write(Worker(0), 0, kOut, "a\nhalf");
  mux_->End(Worker(0), 0);
  mux_ = nullptr;
  EXPECT_EQ(ReadFile(folder_ + "/j1/" + InstanceFiles::NameOf(Worker(0), kOut)), "a\nhalf");
  EXPECT_EQ(out_.ReadToEnd(), "[0]<stdout>:a\n[0]<stdout>:half");
}

TEST_F(OutputMuxTest, FilesHaveTheSameTextAndNamesOfOneLength) {
  options_.directory = absl::StrCat(folder_, "/new/runs");
  options_.np = 11;
  Make();
  mux_->Write(Worker(10), 10, kOut, "a\nhalf ");
  mux_->Write(Worker(3), 3, kOut, "x\n");
  mux_->Write(Worker(10), 10, kOut, "line\n");
  mux_->Write(Worker(10), 10, kErr, "e\n");
  mux_->End(Worker(10), 10);
  mux_ = nullptr;
  EXPECT_EQ(ReadFile(options_.directory + "/rank.10/stdout"), "[10]<stdout>:a\n[10]<stdout>:half line\n");
  EXPECT_EQ(ReadFile(options_.directory + "/rank.10/stderr"), "[10]<stderr>:e\n");
  EXPECT_EQ(ReadFile(options_.directory + "/rank.03/stdout"), "[3]<stdout>:x\n");
  struct stat status;
  EXPECT_EQ(::stat((options_.directory + "/rank.00/stderr").c_str(), &status), 0);
  EXPECT_EQ(status.st_size, 0);
  EXPECT_THAT(out_.ReadToEnd(), HasSubstr("[3]<stdout>:x\n"));
}

TEST_F(OutputMuxTest, OneProcessHasFilesTooAndTheyAreEmptiedForANewJob) {
  options_.directory = folder_;
  for (const char* text : {"a longer first job\n", "b\n"}) {
    Make();
    mux_->Write(Worker(0), 0, kOut, text);
    mux_ = nullptr;
  }
  EXPECT_EQ(ReadFile(folder_ + "/rank.0/stdout"), "[0]<stdout>:b\n");
}

TEST_F(OutputMuxTest, AFolderThatCannotBeMadeIsAnErrorBeforeAnythingStarts) {
  std::ofstream(folder_ + "/file") << "x";
  options_.directory = folder_ + "/file/sub";
  EXPECT_THAT(OutputMux::Create(options_),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       absl::StrCat("--output-filename: make folder ", folder_, "/file/sub: Not a directory")));
}

TEST_F(OutputMuxTest, AFileThatCannotBeWrittenIsToldOnceAndTheConsoleGoesOn) {
  options_.directory = folder_;
  Make();
  const std::string path = folder_ + "/rank.0/stdout";
  ASSERT_EQ(::unlink(path.c_str()), 0);
  ASSERT_EQ(::symlink("/dev/full", path.c_str()), 0);
  mux_->Write(Worker(0), 0, kOut, "a\n");
  mux_->Write(Worker(0), 0, kOut, "b\n");
  mux_ = nullptr;
  EXPECT_EQ(out_.ReadToEnd(), "[0]<stdout>:a\n[0]<stdout>:b\n");
  EXPECT_EQ(err_.ReadToEnd(), absl::StrCat("farandole: --output-filename: write ", path,
                                           ": No space left on device; the job goes on without this file\n"));
}

TEST_F(OutputMuxTest, AReaderThatHasGoneIsToldOnceAndTheJobGoesOn) {
  out_.read.reset();
  Make();
  for (int i = 0; i < 3; ++i) {
    mux_->Write(Worker(0), 0, kOut, "a\n");
    mux_->Flush();
  }
  mux_->Write(Worker(0), 0, kErr, "b\n");
  mux_ = nullptr;
  EXPECT_EQ(err_.ReadToEnd(), "farandole: stdout: Broken pipe; the job goes on without it\n[0]<stderr>:b\n");
}

TEST_F(OutputMuxTest, AResultGoesToItsFileAndNowhereElse) {
  std::ofstream(folder_ + "/function") << "f";
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<FunctionFolder> function, FunctionFolder::Open(folder_));
  options_.results = function.get();
  options_.directory = folder_ + "/files";
  options_.instance_directory = folder_ + "/instances";
  options_.job = "j1";
  options_.stderr_fd = options_.stdout_fd;
  Make();
  mux_->Progress("workers 1/1");
  mux_->Write(Worker(0), 4, OutputStream::kResult, "half ");
  mux_->Write(Worker(0), 4, OutputStream::kResult, "whole\n");
  std::ofstream(folder_ + "/result.5") << "in the way";
  for (int i = 0; i < 2; ++i) mux_->Write(Worker(1), 5, OutputStream::kResult, "lost\n");
  mux_->End(Worker(0), 4);
  EXPECT_THAT(mux_->LastErrorLines(Worker(0)), ElementsAre());
  mux_ = nullptr;
  EXPECT_EQ(ReadFile(folder_ + "/result.4"), "half whole\n");
  EXPECT_EQ(ReadFile(folder_ + "/files/rank.0/stderr"), "");
  EXPECT_EQ(::access((folder_ + "/instances/j1/" + InstanceFiles::NameOf(Worker(0), kErr)).c_str(), F_OK), -1);
  const std::string text = out_.ReadToEnd();
  EXPECT_THAT(text, HasSubstr("farandole: the result of rank 5 is lost: make " + folder_ + "/result.5: File exists\n"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("whole")));
  EXPECT_EQ(text.find("is lost"), text.rfind("is lost")) << "once";
}

TEST_F(OutputMuxTest, AResultThatNobodyAskedForIsDropped) {
  Make();
  mux_->Write(Worker(0), 0, OutputStream::kResult, "x\n");
  mux_ = nullptr;
  EXPECT_EQ(out_.ReadToEnd(), "");
  EXPECT_EQ(err_.ReadToEnd(), "");
}

TEST_F(OutputMuxTest, WaitsForASlowReaderAndLosesNothing) {
  Make();
  constexpr int kLines = 100;
  const std::string line(50'000, 'x');
  std::string read;
  std::thread reader([&] {
    char buffer[4096];
    for (ssize_t size; (size = ::read(out_.read.get(), buffer, sizeof buffer)) > 0;) read.append(buffer, size);
  });
  for (int i = 0; i < kLines; ++i) mux_->Write(Worker(0), 0, kOut, line + "\n");
  mux_ = nullptr;
  out_.write.reset();
  reader.join();
  EXPECT_EQ(read.size(), kLines * (std::string("[0]<stdout>:").size() + line.size() + 1));
}

TEST_F(OutputMuxTest, AStuckReaderHoldsNobodyOnceItIsAbandoned) {
  Make();
  std::thread writer([&] {
    for (int i = 0; i < 100; ++i) mux_->Write(Worker(0), 0, kOut, std::string(100'000, 'x') + "\n");
  });
  mux_->Note("the launcher's own lines do not wait");
  mux_->Abandon();
  writer.join();
  mux_->Flush();
  mux_ = nullptr;
  out_.write.release();  // the abandoned thread may use it still, as it may a process's own stdout
  out_.read.reset();     // lets that thread go
}

TEST_F(OutputMuxTest, TheProgressLineEndsWithTheFirstOutput) {
  options_.stderr_fd = options_.stdout_fd;
  Make();
  mux_->Progress("workers 1/2");
  mux_->Write(Worker(0), 0, kOut, "a\n");
  mux_->Progress("workers 2/2");
  mux_->EndProgress();
  mux_ = nullptr;
  EXPECT_EQ(out_.ReadToEnd(), "workers 1/2\r\x1b[K[0]<stdout>:a\n");
}

TEST_F(OutputMuxTest, RemembersTheLastLinesOfStderrByWorker) {
  Make();
  mux_->Write(Worker(0), 0, kErr, "Trace");
  mux_->Write(Worker(1), 1, kErr, "other\n");
  mux_->Write(Worker(0), 0, kErr, "back\nboom\n");
  mux_->Write(Worker(0), 0, kOut, "not this\n");
  EXPECT_THAT(mux_->LastErrorLines(Worker(0)), ElementsAre("Traceback", "boom"));
  EXPECT_THAT(mux_->LastErrorLines(Worker(1)), ElementsAre("other"));
  EXPECT_THAT(mux_->LastErrorLines(Worker(2)), ElementsAre());
}

}  // namespace
}  // namespace farandole
