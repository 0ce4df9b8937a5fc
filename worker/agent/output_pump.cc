#include "worker/agent/output_pump.h"

#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "tools/base/clock.h"

namespace farandole {
namespace {

// Held per stream, at most: a longest piece, and as much of what follows as one read brings.
constexpr size_t kRoom = 2 * LineAssembler::kMaxPiece;

// One message, and so one turn, at most.
constexpr size_t kMaxMessage = LineAssembler::kMaxPiece;

// How long a pipe may stay open after its worker's end.
constexpr absl::Duration kLinger = absl::Seconds(1);

}  // namespace

OutputPump::OutputPump(EventLoop* loop, int64_t credit, Report report)
    : loop_(loop),
      report_(std::move(report)),
      max_piece_(static_cast<size_t>(std::min<int64_t>(credit, LineAssembler::kMaxPiece))),
      credit_(credit) {}

OutputPump::~OutputPump() {
  for (Stream& stream : streams_) loop_->Unwatch(stream.fd.get());
  for (auto& [incarnation, worker] : workers_) loop_->Cancel(worker.linger);
  loop_->Cancel(flush_);
}

void OutputPump::Grant(int64_t bytes) {
  credit_ += bytes;
  Run();
}

void OutputPump::Add(const WorkerId& worker, UniqueFd out, UniqueFd err, UniqueFd result) {
  Worker* const owner = &workers_.emplace(worker.incarnation, Worker{worker}).first->second;
  const auto add = [&](WorkerOutput::Stream kind, UniqueFd fd) {
    if (!fd) return;
    streams_.emplace_back(owner, kind, std::move(fd), max_piece_);
    ++owner->open;
  };
  add(WorkerOutput::Stream::kStdout, std::move(out));
  add(WorkerOutput::Stream::kStderr, std::move(err));
  add(WorkerOutput::Stream::kResult, std::move(result));
  Run();
}

void OutputPump::WorkerExited(const WorkerId& worker) {
  const auto it = workers_.find(worker.incarnation);
  if (it == workers_.end()) return;
  it->second.exited = true;
  it->second.linger = loop_->At(Now() + kLinger, [this, owner = &it->second] { StopLingering(owner); });
  Run();
}

void OutputPump::StopLingering(Worker* worker) {
  worker->linger = 0;
  for (Stream& stream : streams_) {
    if (stream.worker != worker || !stream.fd) continue;
    int waiting = 0;
    ::ioctl(stream.fd.get(), FIONREAD, &waiting);
    stream.last = waiting;
  }
  Run();
}

void OutputPump::Discard() {
  discarding_ = true;
  Run();
}

void OutputPump::OnReadable(int fd) {
  const auto stream =
      std::find_if(streams_.begin(), streams_.end(), [fd](const Stream& stream) { return stream.fd.get() == fd; });
  if (stream == streams_.end()) return;
  Take(&*stream);
  Run();
}

void OutputPump::Take(Stream* stream) {
  static thread_local char buffer[LineAssembler::kMaxPiece];
  size_t size = std::min(sizeof buffer, kRoom - stream->lines.size());
  if (stream->last >= 0) size = std::min(size, static_cast<size_t>(stream->last));
  const ssize_t n = ::read(stream->fd.get(), buffer, size);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n > 0) {
    if (!discarding_) stream->lines.Append(absl::string_view(buffer, n), Now());
    if (stream->last >= 0) stream->last -= n;
  } else {
    stream->last = 0;
  }
}

void OutputPump::Run() {
  const Instant now = Now();
  for (Stream& stream : streams_) {
    if (discarding_) stream.lines.Take(kRoom, Instant::Infinite());
    if (stream.last == 0 && stream.fd) {
      if (stream.watched) loop_->Unwatch(stream.fd.get());
      stream.fd.reset();
      stream.lines.Finish();
    }
  }
  Send(now);
  RemoveEnded();
  for (Stream& stream : streams_) UpdateWatch(&stream);
  UpdateTimer(now);
}

void OutputPump::Send(Instant now) {
  while (true) {
    const auto next = std::find_if(streams_.begin(), streams_.end(),
                                   [now](const Stream& stream) { return stream.lines.HasPiece(now); });
    if (next == streams_.end()) return;
    std::string pieces = next->lines.Take(std::min(kMaxMessage, static_cast<size_t>(credit_)), now);
    if (pieces.empty()) return;  // it is its turn, however much the others have that would fit
    credit_ -= static_cast<int64_t>(pieces.size());
    report_(WorkerOutput{next->worker->id, next->kind, std::move(pieces)});
    streams_.splice(streams_.end(), streams_, next);
  }
}

void OutputPump::RemoveEnded() {
  for (auto stream = streams_.begin(); stream != streams_.end();) {
    const bool ended = !stream->fd && stream->lines.size() == 0;
    if (ended) --stream->worker->open;
    stream = ended ? streams_.erase(stream) : std::next(stream);
  }
  for (auto worker = workers_.begin(); worker != workers_.end();) {
    if (worker->second.exited && worker->second.open == 0) {
      loop_->Cancel(worker->second.linger);
      report_(WorkerOutputEnded{worker->second.id});
      worker = workers_.erase(worker);
    } else {
      ++worker;
    }
  }
}

void OutputPump::UpdateWatch(Stream* stream) {
  // Not only while there is credit: who has nothing read yet would never get a turn.
  const bool wanted = stream->fd && stream->lines.size() < kRoom;
  if (wanted == stream->watched) return;
  stream->watched = wanted;
  const int fd = stream->fd.get();
  if (wanted) {
    loop_->Watch(fd, EPOLLIN, [this, fd](uint32_t) { OnReadable(fd); });
  } else {
    loop_->Unwatch(fd);
  }
}

void OutputPump::UpdateTimer(Instant now) {
  loop_->Cancel(flush_);
  flush_ = 0;
  Instant first = Instant::Infinite();
  for (const Stream& stream : streams_) {
    // What could be sent and was not waits for credit, not for time.
    if (!stream.lines.HasPiece(now)) first = std::min(first, stream.lines.FlushAt());
  }
  if (!first.is_infinite()) flush_ = loop_->At(first, [this] { Run(); });
}

}  // namespace farandole
