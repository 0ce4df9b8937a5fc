#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>

#include "driver/core/ids.h"
#include "tools/base/event_loop.h"
#include "tools/base/unique_fd.h"
#include "worker/agent/core/line_assembler.h"
#include "worker/agent/core/reports.h"

namespace farandole {

// Carries what workers write to their reports, line by line (core/line_assembler.h), as fast as the other end allows
// and no faster: without credit nothing is sent, then the room is full and nothing is read, and the worker waits in
// write(2). At most 128 KiB are held per stream, whatever a worker does. Streams take turns. A result goes the same
// way, but not by lines.
//
// Nothing that a worker has written is lost: after its exit its pipes are read to their end. A helper that has left the
// worker's group and keeps a pipe open is waited for a second; what is in the pipe then is still taken.
//
// Threads: all of it belongs to the loop's.
class OutputPump {
 public:
  using Report = std::function<void(AgentReport)>;  // WorkerOutput and WorkerOutputEnded

  // `credit`: bytes that may be sent at once, above zero; no line is sent in larger pieces. The loop outlives the pump.
  OutputPump(EventLoop* loop, int64_t credit, Report report);
  ~OutputPump();
  OutputPump(const OutputPump&) = delete;
  OutputPump& operator=(const OutputPump&) = delete;

  // More may be sent.
  void Grant(int64_t bytes);

  // Takes over the read ends, which do not block, of a new worker. `result` may be none.
  void Add(const WorkerId& worker, UniqueFd out, UniqueFd err, UniqueFd result = UniqueFd());

  // The worker has exited and its group has been killed. WorkerOutputEnded follows once all has been sent.
  void WorkerExited(const WorkerId& worker);

  // Nobody listens any more: from now on what comes is read and thrown away, so that no worker waits on its way out.
  // Only WorkerOutputEnded is still reported.
  void Discard();

  // Whether all that was added has ended.
  bool empty() const { return workers_.empty(); }

 private:
  struct Worker {
    WorkerId id;
    int open = 0;  // streams that have not ended
    bool exited = false;
    EventLoop::TimerId linger = 0;
  };
  struct Stream {
    Stream(Worker* owner, WorkerOutput::Stream stream, UniqueFd read_end, size_t max_piece)
        : worker(owner), kind(stream), fd(std::move(read_end)), lines(max_piece, CutOf(stream)) {}
    static LineAssembler::Cut CutOf(WorkerOutput::Stream stream) {
      return stream == WorkerOutput::Stream::kResult ? LineAssembler::Cut::kAnywhere : LineAssembler::Cut::kLines;
    }
    Worker* worker;
    WorkerOutput::Stream kind;
    UniqueFd fd;  // none: at its end
    LineAssembler lines;
    bool watched = false;
    int64_t last = -1;  // bytes that are still read before the end is declared; -1: until the end comes
  };

  void OnReadable(int fd);
  void Take(Stream* stream);  // one read
  void StopLingering(Worker* worker);
  void Run();  // sends what can be, and sets watches and the timer to what can happen next
  void Send(Instant now);
  void RemoveEnded();
  void UpdateWatch(Stream* stream);
  void UpdateTimer(Instant now);

  EventLoop* const loop_;
  const Report report_;
  const size_t max_piece_;
  int64_t credit_;
  bool discarding_ = false;
  std::map<Incarnation, Worker> workers_;
  std::list<Stream> streams_;  // the one whose turn is next is first
  EventLoop::TimerId flush_ = 0;
};

}  // namespace farandole
