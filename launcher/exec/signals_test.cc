#include "launcher/exec/signals.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/clock.h"
#include "tools/base/mutex.h"

namespace farandole {
namespace {

using ::testing::ElementsAre;

TEST(SignalWatcher, EachSignalIsACall) {
  Mutex mutex;
  CondVar changed;
  std::vector<int> seen;
  SignalWatcher watcher([&](int signal) {
    MutexLock lock(&mutex);
    seen.push_back(signal);
    changed.NotifyAll();
  });
  size_t count = 0;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGINT}) {
    ::kill(::getpid(), signal);
    ++count;
    MutexLock lock(&mutex);
    ASSERT_TRUE(changed.AwaitUntil(&mutex, Now() + absl::Seconds(30), [&] { return seen.size() == count; }));
  }
  MutexLock lock(&mutex);
  EXPECT_THAT(seen, ElementsAre(SIGINT, SIGTERM, SIGHUP, SIGINT));
}

TEST(SignalWatcher, AHangUpUnderNohupStaysIgnored) {
  ::signal(SIGHUP, SIG_IGN);
  {
    SignalWatcher watcher([](int signal) { ADD_FAILURE() << "signal " << signal; });
    ::kill(::getpid(), SIGHUP);
    struct sigaction now;
    ::sigaction(SIGHUP, nullptr, &now);
    EXPECT_EQ(now.sa_handler, SIG_IGN);
  }
  ::signal(SIGHUP, SIG_DFL);
}

TEST(SignalWatcher, AnInterruptCountsInTheBackgroundOfAScriptToo) {
  ::signal(SIGINT, SIG_IGN);
  Mutex mutex;
  CondVar changed;
  int seen = 0;
  SignalWatcher watcher([&](int signal) {
    MutexLock lock(&mutex);
    seen = signal;
    changed.NotifyAll();
  });
  ::kill(::getpid(), SIGINT);
  MutexLock lock(&mutex);
  EXPECT_TRUE(changed.AwaitUntil(&mutex, Now() + absl::Seconds(30), [&] { return seen == SIGINT; }));
}

TEST(SignalWatcher, AfterItASignalEndsTheProcessAgain) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // other tests have made threads
  EXPECT_EXIT(
      {
        {
          SignalWatcher watcher([](int) {});
        }
        ::kill(::getpid(), SIGTERM);
        while (true) ::pause();
      },
      ::testing::KilledBySignal(SIGTERM), "");
}

}  // namespace
}  // namespace farandole
