#include "launcher/bench/forked_group.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "launcher/bench/forked_slabs.h"
#include "tools/base/errno_status.h"
#include "tools/base/random_bytes.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

constexpr size_t kEndpointMax = 256;
constexpr size_t kKeyBytes = 32;

// Where the members meet.
struct Meeting {
  pthread_barrier_t all_here;
  char endpoints[1][kEndpointMax];  // as many as there are members
};

absl::StatusOr<Meeting*> MakeMeeting(int size) {
  void* const memory =
      ::mmap(nullptr, sizeof(Meeting) + size * kEndpointMax, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return ErrnoStatus(errno, "mmap");
  auto* const meeting = static_cast<Meeting*>(memory);
  pthread_barrierattr_t shared;
  ::pthread_barrierattr_init(&shared);
  ::pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
  ::pthread_barrier_init(&meeting->all_here, &shared, static_cast<unsigned>(size));
  ::pthread_barrierattr_destroy(&shared);
  return meeting;
}

absl::Status RunMember(ForkedMember member, int size, Meeting* meeting, const std::string& key,
                       const std::function<absl::Status(const ForkedMember&)>& body) {
  TcpListener::Options options;
  options.incarnation = Incarnation(static_cast<uint64_t>(member.spec.rank) + 1);
  ASSIGN_OR_RETURN(const std::unique_ptr<TcpListener> listener, TcpListener::Create(options));
  listener->Start(key);
  std::snprintf(meeting->endpoints[member.spec.rank], kEndpointMax, "%s", listener->endpoint().c_str());
  ::pthread_barrier_wait(&meeting->all_here);
  for (Rank rank = 0; rank < size; ++rank) {
    member.spec.members.push_back(
        {"localhost", Incarnation(static_cast<uint64_t>(rank) + 1), meeting->endpoints[rank]});
  }
  member.listener = listener.get();
  return body(member);
}

// In the child; does not return.
[[noreturn]] void BeMember(ForkedMember member, int size, Meeting* meeting, const std::string& key,
                           const std::function<absl::Status(const ForkedMember&)>& body) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const absl::Status status = RunMember(member, size, meeting, key, body);
  if (!status.ok()) {
    const std::string text = absl::StrCat("rank ", member.spec.rank, ": ", status.message(), "\n");
    std::fputs(text.c_str(), stderr);
  }
  std::fflush(nullptr);
  ::_exit(status.ok() ? 0 : 1);
}

absl::Status Await(std::vector<pid_t> left) {
  absl::Status first;
  const std::vector<pid_t> ranks = left;
  for (size_t ended = 0; ended < ranks.size(); ++ended) {
    int how = 0;
    const pid_t pid = ::waitpid(-1, &how, 0);
    std::erase(left, pid);
    if (how == 0 || !first.ok()) continue;
    const auto rank = std::find(ranks.begin(), ranks.end(), pid) - ranks.begin();
    first = absl::InternalError(WIFSIGNALED(how) ? absl::StrCat("rank ", rank, " was killed by signal ", WTERMSIG(how))
                                                 : absl::StrCat("rank ", rank, " failed; what it said stands above"));
    for (const pid_t other : left) ::kill(other, SIGKILL);
  }
  return first;
}

}  // namespace

absl::Status RunForkedGroup(int size, TransportChoice transport,
                            const std::function<absl::Status(const ForkedMember&)>& body) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ForkedSlabSource> slabs, ForkedSlabSource::Create());
  ASSIGN_OR_RETURN(Meeting* const meeting, MakeMeeting(size));
  const std::string key = RandomBytes(kKeyBytes);
  std::fflush(nullptr);
  std::vector<pid_t> children;
  for (Rank rank = 0; rank < size; ++rank) {
    const pid_t pid = ::fork();
    if (pid < 0) {
      const absl::Status status = ErrnoStatus(errno, absl::StrCat("fork process ", rank, " of ", size));
      for (const pid_t child : children) ::kill(child, SIGKILL);
      Await(std::move(children)).IgnoreError();
      return status;
    }
    if (pid == 0) {
      ForkedMember member;
      member.spec.generation = Generation(1);
      member.spec.rank = rank;
      member.transport = transport;
      member.slabs = slabs.get();
      BeMember(std::move(member), size, meeting, key, body);
    }
    children.push_back(pid);
  }
  absl::Status status = Await(std::move(children));
  ::munmap(meeting, sizeof(Meeting) + size * kEndpointMax);
  return status;
}

}  // namespace farandole
