#include "tools/base/event_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "tools/base/check.h"
#include "tools/base/clock.h"

namespace farandole {

EventLoop::EventLoop() : epoll_(::epoll_create1(EPOLL_CLOEXEC)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  CHECK(epoll_ && wake_) << "epoll/eventfd: " << std::strerror(errno);
  Watch(wake_.get(), EPOLLIN, [this](uint32_t) {
    uint64_t count;
    [[maybe_unused]] const ssize_t n = ::read(wake_.get(), &count, sizeof count);
  });
}

EventLoop::~EventLoop() = default;

void EventLoop::Watch(int fd, uint32_t events, FdCallback callback) {
  Watched& watched = watches_[fd];
  const bool known = watched.callback != nullptr;
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  const int rc = ::epoll_ctl(epoll_.get(), known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event);
  CHECK(rc == 0) << "epoll_ctl(" << fd << "): " << std::strerror(errno);
  watched.events = events;
  watched.callback = std::make_shared<FdCallback>(std::move(callback));
}

void EventLoop::Unwatch(int fd) {
  if (watches_.erase(fd) == 0) return;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

EventLoop::TimerId EventLoop::At(Instant at, Callback callback) {
  const TimerId id = next_timer_++;
  timers_.emplace(std::make_pair(at, id), std::move(callback));
  timer_times_.emplace(id, at);
  return id;
}

void EventLoop::Cancel(TimerId timer) {
  const auto it = timer_times_.find(timer);
  if (it == timer_times_.end()) return;
  timers_.erase({it->second, timer});
  timer_times_.erase(it);
}

void EventLoop::Post(Callback work) {
  {
    MutexLock lock(&mutex_);
    posted_.push_back(std::move(work));
    if (posted_.size() > 1) return;  // the loop has been woken for the first
  }
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(wake_.get(), &one, sizeof one);
}

void EventLoop::Stop() {
  Post([this] {
    MutexLock lock(&mutex_);
    stopping_ = true;
  });
}

void EventLoop::RunPosted() {
  std::vector<Callback> work;
  {
    MutexLock lock(&mutex_);
    work.swap(posted_);
  }
  for (Callback& callback : work) callback();
}

void EventLoop::RunTimers() {
  const Instant now = Now();
  while (!timers_.empty() && timers_.begin()->first.first <= now) {
    Callback callback = std::move(timers_.begin()->second);
    timer_times_.erase(timers_.begin()->first.second);
    timers_.erase(timers_.begin());
    callback();
  }
}

Instant EventLoop::NextTimer() const { return timers_.empty() ? Instant::Infinite() : timers_.begin()->first.first; }

void EventLoop::Run() {
  std::array<epoll_event, 64> ready;
  while (true) {
    {
      MutexLock lock(&mutex_);
      if (stopping_) return;
    }
    const int count = ::epoll_wait(epoll_.get(), ready.data(), ready.size(), PollTimeoutMs(NextTimer()));
    CHECK(count >= 0 || errno == EINTR) << "epoll_wait: " << std::strerror(errno);
    for (int i = 0; i < count; ++i) {
      const auto it = watches_.find(ready[i].data.fd);
      if (it == watches_.end()) continue;  // an earlier callback of this round removed it
      const std::shared_ptr<FdCallback> callback = it->second.callback;
      (*callback)(ready[i].events);
    }
    RunPosted();
    RunTimers();
  }
}

}  // namespace farandole
