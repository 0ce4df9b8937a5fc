#include "worker/agent/worker_processes.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tools/base/check.h"
#include "tools/base/clock.h"
#include "tools/base/log.h"
#include "worker/agent/children.h"

namespace farandole {
namespace {

ExitStatus ToExitStatus(const siginfo_t& info) {
  ExitStatus status;
  (info.si_code == CLD_EXITED ? status.code : status.signal) = info.si_status;
  return status;
}

}  // namespace

WorkerProcesses::WorkerProcesses(EventLoop* loop, Events events, OomWatch memory)
    : loop_(loop), events_(std::move(events)), memory_(std::move(memory)) {}

WorkerProcesses::~WorkerProcesses() {
  while (!workers_.empty()) Remove(workers_.begin()->first);
  for (const auto& [pid, pidfd] : strays_) loop_->Unwatch(pidfd.get());
  loop_->Cancel(strays_limit_);
}

void WorkerProcesses::Start(const WorkerId& worker, Program program) {
  const Incarnation incarnation = worker.incarnation;
  CHECK(!Has(incarnation)) << worker;
  std::variant<Process, SpawnError> spawned = Spawn(program);
  if (const auto* error = std::get_if<SpawnError>(&spawned)) return events_.failed(worker, *error);
  Worker& entry = workers_[incarnation];
  entry = Worker{worker, std::move(program), std::get<Process>(std::move(spawned))};
  loop_->Watch(entry.process.outcome.get(), EPOLLIN, [this, incarnation](uint32_t) { OnOutcome(incarnation); });
}

void WorkerProcesses::ConfirmStarted(Incarnation worker) {
  const auto it = workers_.find(worker);
  if (it != workers_.end() && it->second.process.outcome) OnOutcome(worker);
}

void WorkerProcesses::OnOutcome(Incarnation incarnation) {
  Worker& worker = workers_.at(incarnation);
  loop_->Unwatch(worker.process.outcome.get());
  const absl::optional<SpawnError> error = AwaitExec(worker.program, &worker.process);
  if (error.has_value()) {
    const WorkerId id = worker.id;
    Remove(incarnation);
    return events_.failed(id, *error);
  }
  worker.program = {};
  // Its end is looked at behind what has been posted: what a worker told us before it ended comes first.
  const int pidfd = worker.process.pidfd.get();
  loop_->Watch(pidfd, EPOLLIN, [this, incarnation, pidfd](uint32_t) {
    loop_->Unwatch(pidfd);
    loop_->Post([this, incarnation] { OnEnded(incarnation); });
  });
  events_.started(worker.id, &worker.process);
}

void WorkerProcesses::OnEnded(Incarnation incarnation) {
  const auto it = workers_.find(incarnation);
  if (it == workers_.end()) return;
  const WorkerId id = it->second.id;
  const pid_t pid = it->second.process.pid;
  siginfo_t info{};
  const int rc = ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT);
  CHECK(rc == 0 && info.si_pid == pid) << id << " has ended, but cannot be waited for";
  ::kill(-pid, SIGKILL);  // while the number is still its
  ::waitpid(pid, nullptr, 0);
  const ExitStatus status = ToExitStatus(info);
  const bool out_of_memory = status.signal == SIGKILL && !it->second.killed && memory_.Claim();
  Remove(incarnation);
  ReapStrays();
  events_.exited(id, status, out_of_memory);
}

void WorkerProcesses::Remove(Incarnation incarnation) {
  const auto it = workers_.find(incarnation);
  loop_->Unwatch(it->second.process.outcome.get());
  loop_->Unwatch(it->second.process.pidfd.get());
  workers_.erase(it);
}

void WorkerProcesses::Signal(Incarnation incarnation, int signal) {
  const auto it = workers_.find(incarnation);
  if (it == workers_.end()) return;
  const pid_t pid = it->second.process.pid;
  // A child that has not come to lead its group yet is reached by its own number.
  if (signal == SIGKILL) {
    it->second.killed = true;
    ::kill(-pid, signal);
  }
  ::kill(pid, signal);
}

void WorkerProcesses::SignalAll(int signal) {
  for (const auto& [incarnation, worker] : workers_) Signal(incarnation, signal);
}

void WorkerProcesses::ReapStrays() {
  while (true) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    const bool worker = std::any_of(workers_.begin(), workers_.end(),
                                    [&info](const auto& entry) { return entry.second.process.pid == info.si_pid; });
    if (worker) return;  // OnEnded comes, and then here again
    ::waitpid(info.si_pid, nullptr, 0);
  }
}

void WorkerProcesses::KillStrays(Instant deadline, std::function<void()> done) {
  CHECK(workers_.empty());
  strays_done_ = std::move(done);
  strays_limit_ = loop_->At(deadline, [this] {
    LOG(WARNING) << strays_.size() << " processes that workers left behind could not be killed";
    for (const auto& [pid, pidfd] : strays_) loop_->Unwatch(pidfd.get());
    strays_.clear();
    std::exchange(strays_done_, nullptr)();
  });
  NextRound(deadline);
}

// Killing one may bring its own children here, so the next round begins when this one's have ended.
void WorkerProcesses::NextRound(Instant deadline) {
  ReapStrays();
  for (const pid_t pid : ChildrenOfThisProcess()) {
    UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (!pidfd) continue;
    LOG(INFO) << "killing process " << pid << ", which a worker left behind";
    ::kill(pid, SIGKILL);
    const int fd = pidfd.get();
    loop_->Watch(fd, EPOLLIN, [this, fd, pid, deadline](uint32_t) {
      loop_->Unwatch(fd);
      ::waitpid(pid, nullptr, WNOHANG);
      strays_.erase(pid);
      if (strays_.empty()) NextRound(deadline);
    });
    strays_[pid] = std::move(pidfd);
  }
  if (!strays_.empty()) return;
  loop_->Cancel(strays_limit_);
  std::exchange(strays_done_, nullptr)();
}

}  // namespace farandole
