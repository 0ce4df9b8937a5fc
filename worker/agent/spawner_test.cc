#include "worker/agent/spawner.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/clock.h"

namespace farandole {
namespace {

using ::testing::HasSubstr;

struct Result {
  std::string out, err;
  int status = 0;  // as of waitpid
};

std::string ReadToEnd(int fd) {
  ::fcntl(fd, F_SETFL, 0);  // blocking again
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = ::read(fd, buffer, sizeof buffer)) > 0;) text.append(buffer, n);
  return text;
}

Result Finish(Process process) {
  Result result;
  result.out = ReadToEnd(process.stdout_pipe.get());
  result.err = ReadToEnd(process.stderr_pipe.get());
  EXPECT_EQ(::waitpid(process.pid, &result.status, 0), process.pid);
  return result;
}

Process MustStart(const Program& program) {
  std::variant<Process, SpawnError> spawned = Spawn(program);
  if (const auto* error = std::get_if<SpawnError>(&spawned)) {
    ADD_FAILURE() << error->what << " " << error->error;
    std::abort();
  }
  return std::get<Process>(std::move(spawned));
}

Result RunToEnd(const Program& program) {
  Process process = MustStart(program);
  const absl::optional<SpawnError> error = AwaitExec(program, &process);
  if (!error.has_value()) return Finish(std::move(process));
  ADD_FAILURE() << error->what << " " << error->error;
  return {};
}

SpawnError FailToRun(const Program& program) {
  Process process = MustStart(program);
  const absl::optional<SpawnError> error = AwaitExec(program, &process);
  EXPECT_TRUE(error.has_value());
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a process was left";
  return error.value_or(SpawnError{});
}

Program Shell(const std::string& script) { return {{"/bin/sh", "-c", script}, {"PATH=/usr/bin:/bin"}, "/"}; }

void WriteScript(const std::string& path, const std::string& text, int mode) {
  std::ofstream(path) << text;
  ASSERT_EQ(::chmod(path.c_str(), mode), 0);
}

TEST(Spawn, ArgumentsAndEnvironmentArriveByteForByte) {
  const std::string odd = "a b\n'\"$(x)\xff\\";
  const Program program{{"/bin/sh", "-c", "printf '%s|' \"$@\"; cat /proc/self/environ", "sh", odd, ""},
                        {"PATH=/usr/bin:/bin", "X= " + odd, "not a shell name=1"},
                        "/usr"};
  const Result result = RunToEnd(program);
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, ::testing::StartsWith(odd + "||"));
  EXPECT_THAT(result.out, HasSubstr("X= " + odd + std::string(1, '\0')));
  const Result environment = RunToEnd({{"cat", "/proc/self/environ"}, program.environment, "/"});
  std::string expected;
  for (const std::string& variable : program.environment) expected += variable + std::string(1, '\0');
  EXPECT_EQ(environment.out, expected);
}

TEST(Spawn, StreamsFolderAndStatusAreTheWorkersOwn) {
  const Result result = RunToEnd(Shell("cd . && pwd; echo oops >&2; cat; exit 7"));  // cat ends: /dev/null
  EXPECT_EQ(result.out, "/\n");
  EXPECT_EQ(result.err, "oops\n");
  EXPECT_EQ(WEXITSTATUS(result.status), 7);
}

TEST(Spawn, NothingIsInheritedButTheThreeStreams) {
  const int leak = ::fcntl(0, F_DUPFD, 100);  // not close-on-exec
  EXPECT_EQ(RunToEnd(Shell(absl::StrCat("test -e /proc/$$/fd/", leak, " && echo leaked"))).out, "");
  ::close(leak);
}

UniqueFd MemoryWith(const std::string& text) {
  UniqueFd memory(::memfd_create("input", MFD_CLOEXEC));
  EXPECT_EQ(::write(memory.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  EXPECT_EQ(::lseek(memory.get(), 0, SEEK_SET), 0);
  return memory;
}

TEST(Spawn, AProgramThatIsToReadAndToWriteAResultHasBothAndNothingElse) {
  const int leak = ::fcntl(0, F_DUPFD, 100);  // not close-on-exec
  Program program = Shell("cat >&3; ls /proc/self/fd; echo oops >&2");
  program.input = MemoryWith("read\nme");
  program.wants_result = true;
  Process process = MustStart(program);
  EXPECT_FALSE(AwaitExec(program, &process).has_value());
  EXPECT_EQ(ReadToEnd(process.result_pipe.get()), "read\nme");
  const Result result = Finish(std::move(process));
  ::close(leak);
  EXPECT_EQ(result.out, "0\n1\n2\n3\n4\n") << "4 is of ls itself";
  EXPECT_EQ(result.err, "oops\n");
}

// Whatever stands at the result's number in the parent, or would come to stand there.
TEST(Spawn, AResultDoesNotDependOnWhichDescriptorsAreFree) {
  const UniqueFd kept(::fcntl(kResultFd, F_DUPFD_CLOEXEC, 50));
  for (int freed = 0; freed < 8; ++freed) {
    const int last = kResultFd + freed;
    for (int fd = kResultFd; fd <= last; ++fd) ::close(fd);
    Program program = Shell("echo r >&3; echo o; echo e >&2; exit 4");
    program.wants_result = true;
    Process process = MustStart(program);
    EXPECT_FALSE(AwaitExec(program, &process).has_value());
    EXPECT_EQ(ReadToEnd(process.result_pipe.get()), "r\n");
    const Result result = Finish(std::move(process));
    EXPECT_EQ(result.out, "o\n");
    EXPECT_EQ(result.err, "e\n");
    EXPECT_EQ(WEXITSTATUS(result.status), 4);
    Program missing{{"/no/such/program"}, {}, "/"};
    missing.wants_result = true;
    EXPECT_EQ(FailToRun(missing).error, ENOENT);
  }
  ::dup2(kept.get(), kResultFd);
}

// The mask of `name` in the text of /proc/PID/status.
uint64_t Mask(const std::string& status, const std::string& name) {
  const size_t at = status.find(name + ":\t");
  return std::strtoull(status.c_str() + at + name.size() + 2, nullptr, 16);
}

TEST(Spawn, SignalsAreAsInANewShell) {
  ::signal(SIGINT, SIG_IGN);
  sigset_t usr1, before;
  ::sigemptyset(&usr1);
  ::sigaddset(&usr1, SIGUSR1);
  ::pthread_sigmask(SIG_BLOCK, &usr1, &before);
  const std::string status = RunToEnd({{"cat", "/proc/self/status"}, {}, "/"}).out;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::signal(SIGINT, SIG_DFL);
  EXPECT_EQ(Mask(status, "SigBlk"), 0u);
  // 32 and 33 are the C library's own; whether they are ignored is inherited from the test's runner.
  EXPECT_EQ(Mask(status, "SigIgn") & ~(uint64_t{3} << 31), 0u);
  sigset_t now;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &now);
  EXPECT_FALSE(::sigismember(&now, SIGTERM)) << "the caller's own mask came back";
}

TEST(Spawn, AWorkerLeadsItsOwnSessionAndGroup) {
  Process process = MustStart({{"cat", "/proc/self/stat"}, {}, "/"});
  const pid_t pid = process.pid;
  // "pid (name) state ppid pgrp session ..."
  EXPECT_THAT(Finish(std::move(process)).out,
              ::testing::StartsWith(absl::StrCat(pid, " (cat) R ", ::getpid(), " ", pid, " ", pid, " ")));
}

TEST(Spawn, PathIsThatOfTheWorkersEnvironment) {
  const std::string folder = ::testing::TempDir() + "/bin";
  ::mkdir(folder.c_str(), 0755);
  WriteScript(folder + "/farandole-test-prog", "#!/bin/sh\necho found\n", 0755);
  const std::string name = "farandole-test-prog";
  EXPECT_EQ(RunToEnd({{name}, {"PATH=/nowhere:" + folder}, "/"}).out, "found\n");
  EXPECT_EQ(RunToEnd({{name}, {"PATH=/nowhere:"}, folder}).out, "found\n") << "an empty entry is the working folder";
  const SpawnError error = FailToRun({{name}, {"PATH=/nowhere:/usr"}, "/"});
  EXPECT_EQ(error.error, ENOENT);
  EXPECT_EQ(error.what, name + " (searched in PATH: /nowhere:/usr)");
}

TEST(Spawn, SaysWhatCouldNotBeDone) {
  const std::string folder = ::testing::TempDir();
  SpawnError error = FailToRun({{"/no/such/program"}, {}, "/"});
  EXPECT_EQ(error.error, ENOENT);
  EXPECT_EQ(error.what, "/no/such/program");

  error = FailToRun({{"true"}, {}, "/no/such/folder"});
  EXPECT_EQ(error.error, ENOENT);
  EXPECT_EQ(error.what, "working folder /no/such/folder");

  WriteScript(folder + "/forbidden", "#!/bin/sh\n", 0644);
  error = FailToRun({{"forbidden"}, {"PATH=" + folder + ":/usr/bin"}, "/"});
  EXPECT_EQ(error.error, EACCES);

  WriteScript(folder + "/no_interpreter", "#!/no/such/python\n", 0755);
  error = FailToRun({{"./no_interpreter"}, {}, folder});
  EXPECT_EQ(error.error, ENOENT);
  EXPECT_EQ(error.what, "./no_interpreter (it is there, but not the interpreter that its first line names)");

  WriteScript(folder + "/no_program", "echo x\n", 0755);
  error = FailToRun({{"./no_program"}, {}, folder});
  EXPECT_EQ(error.error, ENOEXEC);
}

TEST(Spawn, AWorkerDiesWithTheThreadThatStartedIt) {
  Process process;
  std::thread([&] {
    const Program program{{"sleep", "1000"}, {}, "/"};
    process = MustStart(program);
    EXPECT_FALSE(AwaitExec(program, &process).has_value());
  }).join();
  pollfd waiting{process.pidfd.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&waiting, 1, 20'000), 1);
  const Result result = Finish(std::move(process));
  EXPECT_TRUE(WIFSIGNALED(result.status));
  EXPECT_EQ(WTERMSIG(result.status), SIGKILL);
}

TEST(Spawn, IsCheap) {
  const Program program{{"true"}, {}, "/"};
  const Instant begin = Now();
  std::vector<Process> processes;
  for (int i = 0; i < 32; ++i) processes.push_back(MustStart(program));
  const absl::Duration started = Now() - begin;
  for (Process& process : processes) {
    EXPECT_FALSE(AwaitExec(program, &process).has_value());
    EXPECT_EQ(Finish(std::move(process)).status, 0);
  }
  RecordProperty("milliseconds_to_start_32", absl::StrCat(absl::ToDoubleMilliseconds(started)));
  RecordProperty("milliseconds_to_end_32", absl::StrCat(absl::ToDoubleMilliseconds(Now() - begin)));
  EXPECT_LT(started, absl::Seconds(10));  // usually some milliseconds; a busy machine must not fail it
}

}  // namespace
}  // namespace farandole
