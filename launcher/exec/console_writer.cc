#include "launcher/exec/console_writer.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tools/base/mutex.h"

namespace farandole {
namespace {

// 0, or errno.
int WriteAll(int fd, absl::string_view data) {
  while (!data.empty()) {
    const ssize_t written = ::write(fd, data.data(), data.size());
    if (written >= 0) {
      data.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {  // somebody else who has this terminal made it so
      pollfd ready{fd, POLLOUT, 0};
      ::poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

}  // namespace

struct ConsoleWriter::State {
  struct Item {
    OutputStream stream;
    std::string text;
  };

  Mutex mutex;
  CondVar changed;
  std::deque<Item> items ABSL_GUARDED_BY(mutex);
  size_t waiting ABSL_GUARDED_BY(mutex) = 0;  // bytes, also those that are being written
  bool ending ABSL_GUARDED_BY(mutex) = false;
  bool abandoned ABSL_GUARDED_BY(mutex) = false;
  std::thread thread;

  // The thread's own.
  int fds[2];
  bool given_up[2] = {false, false};

  void Run();
  void Write(const Item& item);
};

void ConsoleWriter::State::Write(const Item& item) {
  const int index = item.stream == OutputStream::kStdout ? 0 : 1;
  if (given_up[index]) return;
  const int error = WriteAll(fds[index], item.text);
  if (error == 0) return;
  given_up[index] = true;
  {
    MutexLock lock(&mutex);
    if (given_up[1 - index] || abandoned) return;
  }
  WriteAll(fds[1 - index], absl::StrCat("farandole: ", index == 0 ? "stdout" : "stderr", ": ", std::strerror(error),
                                        "; the job goes on without it\n"));
}

void ConsoleWriter::State::Run() {
  while (true) {
    Item item;
    {
      MutexLock lock(&mutex);
      changed.Await(&mutex, [this] {
        mutex.AssertHeld();
        return !items.empty() || ending || abandoned;
      });
      if (items.empty()) return;
      item = std::move(items.front());
      items.pop_front();
    }
    Write(item);
    MutexLock lock(&mutex);
    if (!abandoned) waiting -= item.text.size();
    changed.NotifyAll();
  }
}

ConsoleWriter::ConsoleWriter(int stdout_fd, int stderr_fd) : state_(std::make_shared<State>()) {
  state_->fds[0] = stdout_fd;
  state_->fds[1] = stderr_fd;
  state_->thread = std::thread([state = state_] { state->Run(); });
}

ConsoleWriter::~ConsoleWriter() {
  bool abandoned = false;
  {
    MutexLock lock(&state_->mutex);
    state_->ending = true;
    abandoned = state_->abandoned;
    state_->changed.NotifyAll();
  }
  abandoned ? state_->thread.detach() : state_->thread.join();
}

void ConsoleWriter::Enqueue(OutputStream stream, std::string text) {
  if (text.empty()) return;
  MutexLock lock(&state_->mutex);
  if (state_->abandoned) return;
  state_->waiting += text.size();
  auto& items = state_->items;
  if (!items.empty() && items.back().stream == stream) {
    items.back().text += text;
  } else {
    items.push_back({stream, std::move(text)});
  }
  state_->changed.NotifyAll();
}

void ConsoleWriter::WaitForRoom() {
  MutexLock lock(&state_->mutex);
  state_->changed.Await(&state_->mutex, [this] {
    state_->mutex.AssertHeld();
    return state_->waiting <= kRoom || state_->abandoned;
  });
}

void ConsoleWriter::Flush() {
  MutexLock lock(&state_->mutex);
  state_->changed.Await(&state_->mutex, [this] {
    state_->mutex.AssertHeld();
    return state_->waiting == 0 || state_->abandoned;
  });
}

void ConsoleWriter::Abandon() {
  MutexLock lock(&state_->mutex);
  state_->abandoned = true;
  state_->items.clear();
  state_->waiting = 0;
  state_->changed.NotifyAll();
}

}  // namespace farandole
