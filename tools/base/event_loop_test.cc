#include "tools/base/event_loop.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tools/base/clock.h"
#include "tools/base/unique_fd.h"

namespace farandole {
namespace {

TEST(EventLoop, RunsPostedWorkInOrderAndAllOfItBeforeItStops) {
  EventLoop loop;
  std::vector<int> seen;
  std::thread other([&] {
    for (int i = 0; i < 1000; ++i) loop.Post([&seen, i] { seen.push_back(i); });
    loop.Stop();
  });
  loop.Run();
  other.join();
  ASSERT_EQ(seen.size(), 1000u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(seen[i], i);
}

TEST(EventLoop, TimersFireInTheOrderOfTheirTimesAndNotWhenCancelled) {
  EventLoop loop;
  std::string order;
  const Instant start = Now();
  loop.At(start + absl::Milliseconds(4), [&] { order += 'c', loop.Stop(); });
  loop.At(start + absl::Milliseconds(1), [&] { order += 'a'; });
  const EventLoop::TimerId cancelled = loop.At(start + absl::Milliseconds(2), [&] { order += 'x'; });
  loop.At(start + absl::Milliseconds(2), [&] { order += 'b'; });
  loop.Cancel(cancelled);
  loop.Run();
  EXPECT_EQ(order, "abc");
}

TEST(EventLoop, AWatchMayRemoveItselfAndAnotherWhileItRuns) {
  EventLoop loop;
  int pipes[2][2];
  ASSERT_EQ(::pipe2(pipes[0], O_CLOEXEC), 0);
  ASSERT_EQ(::pipe2(pipes[1], O_CLOEXEC), 0);
  UniqueFd ends[] = {UniqueFd(pipes[0][0]), UniqueFd(pipes[0][1]), UniqueFd(pipes[1][0]), UniqueFd(pipes[1][1])};
  int calls = 0;
  for (int i : {0, 1}) {
    loop.Watch(pipes[i][0], EPOLLIN, [&](uint32_t) {
      ++calls;
      loop.Unwatch(pipes[0][0]);
      loop.Unwatch(pipes[1][0]);
      loop.Stop();
    });
  }
  ASSERT_EQ(::write(pipes[0][1], "x", 1), 1);
  ASSERT_EQ(::write(pipes[1][1], "x", 1), 1);
  loop.Run();
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace farandole
