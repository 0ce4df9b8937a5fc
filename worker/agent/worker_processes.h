#pragma once

#include <sys/types.h>

#include <functional>
#include <map>

#include "driver/core/ids.h"
#include "tools/base/event_loop.h"
#include "worker/agent/oom_watch.h"
#include "worker/agent/spawner.h"

namespace farandole {

// The processes of an agent: starts workers, knows each one's end by its pidfd, and sees to it that nothing that
// descends from them outlives the job.
//
//   Start -> started -> exited          (or started is failed, and that is all)
//
// A worker's process group is killed when its leader has ended, before the leader's number can be given to another
// process. Descendants that have left their group become this process's children when their parent ends (it is a
// "subreaper"; main() says so): they are reaped when they end and killed by KillRest. Only recorded groups and children
// are ever killed.
//
// Threads: all of it belongs to the loop's, which is the process's main thread (worker/agent/spawner.h).
class WorkerProcesses {
 public:
  struct Events {
    // The program runs. `process` has its pipes, for the taking.
    std::function<void(const WorkerId&, Process* process)> started;
    std::function<void(const WorkerId&, const SpawnError&)> failed;
    // Runs after all that was posted to the loop before the process ended. `out_of_memory`: by a SIGKILL that was most
    // likely the kernel's, for want of memory (worker/agent/oom_watch.h).
    std::function<void(const WorkerId&, ExitStatus, bool out_of_memory)> exited;
  };

  WorkerProcesses(EventLoop* loop, Events events, OomWatch memory = OomWatch());
  ~WorkerProcesses();  // leaves processes alone: the kernel ends them with this thread
  WorkerProcesses(const WorkerProcesses&) = delete;
  WorkerProcesses& operator=(const WorkerProcesses&) = delete;

  // `worker` is not here yet. Answers by an event, maybe at once.
  void Start(const WorkerId& worker, Program program);

  // Brings the event `started` of a worker forward if it has not come yet: `worker` has shown a sign of life.
  void ConfirmStarted(Incarnation worker);

  // SIGKILL reaches the worker's whole group, others the worker alone: its helpers (data loaders) end with it, and a
  // step that is to be saved still needs them. Does nothing if the worker is gone.
  void Signal(Incarnation worker, int signal);
  void SignalAll(int signal);

  bool Has(Incarnation worker) const { return workers_.count(worker) != 0; }
  // Workers that have not ended.
  int size() const { return static_cast<int>(workers_.size()); }

  // Reaps ended descendants that are not workers. Called now and then.
  void ReapStrays();

  // When no worker is left: kills and reaps what else descends from this process, round by round, and calls `done` when
  // there is nothing, or when `deadline` has passed.
  void KillStrays(Instant deadline, std::function<void()> done);

 private:
  struct Worker {
    WorkerId id;
    Program program;  // until it is known to run
    Process process;
    bool killed = false;  // by us
  };

  void OnOutcome(Incarnation worker);
  void OnEnded(Incarnation worker);
  void Remove(Incarnation worker);
  void NextRound(Instant deadline);

  EventLoop* const loop_;
  const Events events_;
  OomWatch memory_;
  std::map<Incarnation, Worker> workers_;

  // KillStrays.
  std::function<void()> strays_done_;
  std::map<pid_t, UniqueFd> strays_;  // pidfds
  EventLoop::TimerId strays_limit_ = 0;
};

}  // namespace farandole
