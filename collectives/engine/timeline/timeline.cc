#include "collectives/engine/timeline/timeline.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "tools/base/clock.h"
#include "tools/base/errno_status.h"

namespace farandole {

absl::StatusOr<std::unique_ptr<Timeline>> Timeline::Start(TimelineOptions options) {
  UniqueFd file(::open(options.path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file) return ErrnoStatus(errno, absl::StrCat("timeline: cannot open ", options.path, " for writing"));
  auto timeline = absl::WrapUnique(new Timeline(std::move(options), std::move(file)));
  std::string header = "[\n";
  timeline->text_.AppendHeader(timeline->options_.origin_epoch_micros, &header);
  absl::Status written = timeline->Write(std::move(header));
  if (!written.ok()) return written;
  timeline->writer_ = std::thread([raw = timeline.get()] { raw->Loop(); });
  return timeline;
}

Timeline::Timeline(TimelineOptions options, UniqueFd file) : options_(std::move(options)), file_(std::move(file)) {}

Timeline::~Timeline() {
  {
    MutexLock lock(&mutex_);
    ending_ = true;
    changed_.NotifyAll();
  }
  if (writer_.joinable()) writer_.join();
}

int64_t Timeline::MicrosOf(Instant at) const {
  return absl::ToInt64Microseconds(at + options_.ahead - options_.origin);
}

void Timeline::Record(Instant at, TraceEvent event) {
  event.micros = MicrosOf(at);
  MutexLock lock(&mutex_);
  if (queue_.size() >= options_.queue_events || !status_.ok()) {
    ++dropped_;
    return;
  }
  queue_.push_back(std::move(event));
  // The first of a batch wakes the writer, which then lets others come.
  if (queue_.size() == 1) changed_.NotifyAll();
}

absl::Status Timeline::status() const {
  MutexLock lock(&mutex_);
  return status_;
}

void Timeline::Loop() {
  while (true) {
    std::vector<TraceEvent> batch;
    int64_t dropped = 0;
    bool last = false;
    {
      MutexLock lock(&mutex_);
      changed_.Await(&mutex_, [this] {
        mutex_.AssertHeld();
        return ending_ || !queue_.empty();
      });
      changed_.AwaitUntil(&mutex_, Now() + options_.interval, [this] {
        mutex_.AssertHeld();
        return ending_;
      });
      batch.swap(queue_);
      dropped = std::exchange(dropped_, 0);
      last = ending_;
    }
    absl::Status written = batch.empty() && dropped == 0 ? absl::OkStatus() : Write(TextOf(batch, dropped));
    if (!written.ok()) {
      MutexLock lock(&mutex_);
      status_ = std::move(written);
      return;
    }
    if (last) return;
  }
}

std::string Timeline::TextOf(const std::vector<TraceEvent>& batch, int64_t dropped) {
  std::string text;
  for (const TraceEvent& event : batch) text_.Append(event, &text);
  if (dropped > 0) text_.AppendDropped(dropped, MicrosOf(Now()), &text);
  return text;
}

absl::Status Timeline::Write(std::string text) {
  const int64_t end = bracket_at_ + static_cast<int64_t>(text.size());
  text += "\n]";
  int64_t done = 0;
  while (done < static_cast<int64_t>(text.size())) {
    const ssize_t n = ::pwrite(file_.get(), text.data() + done, text.size() - done, bracket_at_ + done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      return ErrnoStatus(errno, absl::StrCat("timeline: cannot write ", options_.path, "; its last events are lost"));
    }
    done += n;
  }
  bracket_at_ = end;
  return absl::OkStatus();
}

}  // namespace farandole
