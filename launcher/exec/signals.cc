#include "launcher/exec/signals.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "tools/base/check.h"

namespace farandole {
namespace {

bool IsIgnored(int signal) {
  struct sigaction now;
  ::sigaction(signal, nullptr, &now);
  return now.sa_handler == SIG_IGN;
}

sigset_t WatchedSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  if (!IsIgnored(SIGHUP)) sigaddset(&set, SIGHUP);
  return set;
}

}  // namespace

SignalWatcher::SignalWatcher(std::function<void(int signal)> on_signal)
    : on_signal_(std::move(on_signal)), stop_(::eventfd(0, EFD_CLOEXEC)) {
  for (const int signal : {SIGINT, SIGTERM}) {
    if (IsIgnored(signal)) std::signal(signal, SIG_DFL);
  }
  const sigset_t set = WatchedSignals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signals_.reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  CHECK(signals_ && stop_) << "signalfd/eventfd: " << std::strerror(errno);
  thread_ = std::thread([this] { Run(); });
}

SignalWatcher::~SignalWatcher() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(stop_.get(), &one, sizeof one);
  thread_.join();
  const sigset_t set = WatchedSignals();
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

void SignalWatcher::Run() {
  while (true) {
    pollfd ready[] = {{signals_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
    ::poll(ready, 2, -1);
    signalfd_siginfo info;
    while (::read(signals_.get(), &info, sizeof info) == sizeof info) on_signal_(static_cast<int>(info.ssi_signo));
    if (ready[1].revents != 0) return;
  }
}

}  // namespace farandole
