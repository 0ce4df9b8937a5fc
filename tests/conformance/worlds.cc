#include "tests/conformance/worlds.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "collectives/cpu/create.h"
#include "collectives/cpu/transport_communicator.h"
#include "collectives/transport/inproc/inproc_control_channel.h"
#include "collectives/transport/inproc/inproc_transport.h"
#include "collectives/transport/shm/local_slab_source.h"
#include "collectives/transport/shm/shm_transport.h"
#include "collectives/transport/shm_control/shm_control_channel.h"
#include "collectives/transport/tcp/candidates.h"
#include "collectives/transport/tcp/socket.h"
#include "collectives/transport/tcp/tcp_control_channel.h"
#include "collectives/transport/tcp/tcp_listener.h"
#include "collectives/transport/tcp/tcp_transport.h"
#include "tools/base/check.h"
#include "tools/base/unique_fd.h"

namespace farandole::testing {
namespace {

class InprocWorld : public World {
 public:
  explicit InprocWorld(int size) : transports_(size), channels_(size) {}
  GroupSpec spec(Rank rank) const override { return transports_.spec(rank); }
  std::unique_ptr<Transport> MakeTransport(Rank rank) override { return transports_.Join(rank); }
  std::unique_ptr<Communicator> MakeCommunicator(Rank rank) override {
    return MakeTransportCommunicator(MakeTransport(rank));
  }
  std::unique_ptr<ControlChannel> MakeControlChannel(Rank rank) override { return channels_.Join(rank); }

 private:
  InprocTransportGroup transports_;
  InprocControlGroup channels_;
};

GroupSpec SpecOf(int size) {
  GroupSpec spec;
  spec.generation = Generation(3);
  spec.group = 1;
  for (Rank rank = 0; rank < size; ++rank) {
    spec.members.push_back({"a", Incarnation(1000 + rank), ""});
  }
  return spec;
}

class ShmWorld : public World {
 public:
  explicit ShmWorld(int size) : spec_(SpecOf(size)) {}
  GroupSpec spec(Rank rank) const override {
    GroupSpec spec = spec_;
    spec.rank = rank;
    return spec;
  }
  std::unique_ptr<Transport> MakeTransport(Rank rank) override {
    auto transport = CreateShmTransport(spec(rank), slabs_, Eventually());
    CHECK_OK(transport.status());
    return *std::move(transport);
  }
  std::unique_ptr<Communicator> MakeCommunicator(Rank rank) override {
    auto communicator = CreateCommunicator(spec(rank), TransportChoice::kShm, nullptr, &slabs_, Eventually());
    CHECK_OK(communicator.status());
    return *std::move(communicator);
  }
  std::unique_ptr<ControlChannel> MakeControlChannel(Rank rank) override {
    auto channel = CreateShmControlChannel(spec(rank), slabs_, nullptr, Eventually());
    CHECK_OK(channel.status());
    return *std::move(channel);
  }

 private:
  const GroupSpec spec_;
  LocalSlabSource slabs_;
};

class TcpWorld : public World {
 public:
  TcpWorld(int size, TcpListener::Options options) : spec_(SpecOf(size)) {
    for (GroupMember& member : spec_.members) {
      options.incarnation = member.incarnation;
      auto listener = TcpListener::Create(options);
      CHECK_OK(listener.status());
      (*listener)->Start("the key of the job");
      member.host = absl::StrCat("host", listeners_.size());
      member.endpoint = (*listener)->endpoint();
      listeners_.push_back(*std::move(listener));
    }
  }

  // Puts in front of each member's addresses one where nobody listens, and the next member's.
  void AddDecoys() {
    nobody_ = Bind();
    const auto address = LocalAddress(nobody_.get());
    CHECK_OK(address.status());
    std::vector<std::string> endpoints;
    for (Rank rank = 0; rank < spec_.size(); ++rank) {
      const std::vector<std::string> next = SplitEndpoints(spec_.members[(rank + 1) % spec_.size()].endpoint);
      endpoints.push_back(absl::StrCat(FormatEndpoint(*address), ",", next[0], ",", spec_.members[rank].endpoint));
    }
    for (Rank rank = 0; rank < spec_.size(); ++rank) spec_.members[rank].endpoint = endpoints[rank];
  }

  GroupSpec spec(Rank rank) const override {
    GroupSpec spec = spec_;
    spec.rank = rank;
    return spec;
  }
  std::unique_ptr<Transport> MakeTransport(Rank rank) override {
    return CreateTcpTransport(spec(rank), *listeners_[rank]);
  }
  std::unique_ptr<Communicator> MakeCommunicator(Rank rank) override {
    auto communicator =
        CreateCommunicator(spec(rank), TransportChoice::kTcp, listeners_[rank].get(), nullptr, Eventually());
    CHECK_OK(communicator.status());
    return *std::move(communicator);
  }
  std::unique_ptr<ControlChannel> MakeControlChannel(Rank rank) override {
    return CreateTcpControlChannel(spec(rank), *listeners_[rank]);
  }

 protected:
  TcpListener* listener(Rank rank) { return listeners_[rank].get(); }
  void SetHost(Rank rank, std::string host) { spec_.members[rank].host = std::move(host); }

 private:
  static UniqueFd Bind() {
    const auto any = ParseEndpoint("127.0.0.1:0");
    CHECK_OK(any.status());
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    CHECK(fd && ::bind(fd.get(), any->get(), any->length) == 0) << "bind";
    return fd;
  }

  GroupSpec spec_;
  std::vector<std::unique_ptr<TcpListener>> listeners_;
  UniqueFd nobody_;
};

// Five of eight ranks on one host and three on the other, in turns: hosts of different sizes, whose ranks do not follow
// each other.
class TwoHostsWorld : public TcpWorld {
 public:
  explicit TwoHostsWorld(int size) : TcpWorld(size, TcpListener::Options()) {
    for (Rank rank = 0; rank < size; ++rank) SetHost(rank, OnFirst(rank) ? "first" : "second");
  }
  std::unique_ptr<Communicator> MakeCommunicator(Rank rank) override {
    SlabSource* const slabs = OnFirst(rank) ? &first_ : &second_;
    auto communicator = CreateCommunicator(spec(rank), TransportChoice::kAuto, listener(rank), slabs, Eventually());
    CHECK_OK(communicator.status());
    return *std::move(communicator);
  }

 private:
  static bool OnFirst(Rank rank) { return rank % 3 != 1; }
  LocalSlabSource first_;
  LocalSlabSource second_;
};

std::unique_ptr<World> MakeTcpListsWorld(int size) {
  TcpListener::Options options;
  options.addresses = {"127.0.0.1", "127.0.0.2", "::1"};
  auto world = std::make_unique<TcpWorld>(size, options);
  world->AddDecoys();
  return world;
}

// The letter that the kernel gives the thread's state; 0 if it is gone.
char StateOf(pid_t thread) {
  std::ifstream file(absl::StrCat("/proc/self/task/", thread, "/stat"));
  std::stringstream text;
  text << file.rdbuf();
  const std::string stat = text.str();
  const size_t name_end = stat.rfind(')');
  return name_end == std::string::npos ? '\0' : stat[name_end + 2];
}

}  // namespace

std::string Name(Means means) {
  switch (means) {
    case Means::kInproc:
      return "inproc";
    case Means::kShm:
      return "shm";
    case Means::kTcp:
      return "tcp";
    case Means::kTcpLists:
      return "tcp_lists";
    case Means::kTwoHosts:
      return "two_hosts";
  }
  return "";
}

std::unique_ptr<World> MakeWorld(Means means, int size) {
  switch (means) {
    case Means::kInproc:
      return std::make_unique<InprocWorld>(size);
    case Means::kShm:
      return std::make_unique<ShmWorld>(size);
    case Means::kTcp:
      return std::make_unique<TcpWorld>(size, TcpListener::Options());
    case Means::kTcpLists:
      return MakeTcpListsWorld(size);
    case Means::kTwoHosts:
      return std::make_unique<TwoHostsWorld>(size);
  }
  return nullptr;
}

std::unique_ptr<Communicator> MakeTransportCommunicator(std::unique_ptr<Transport> transport) {
  return std::make_unique<TransportCommunicator>(std::move(transport));
}

void OnAllRanks(int size, const std::function<void(Rank)>& body) {
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < size; ++rank) threads.emplace_back(body, rank);
  for (std::thread& thread : threads) thread.join();
}

struct BlockedThread::State {
  std::atomic<pid_t> id{0};
  std::thread thread;
};

BlockedThread::BlockedThread(std::function<void()> body) : state_(std::make_unique<State>()) {
  state_->thread = std::thread([state = state_.get(), body = std::move(body)] {
    state->id = static_cast<pid_t>(::syscall(SYS_gettid));
    body();
  });
}

BlockedThread::~BlockedThread() { Join(); }

void BlockedThread::AwaitAsleep() const {
  const Instant deadline = Eventually();
  while (state_->id == 0 || StateOf(state_->id) == 'R') {
    CHECK(Now() < deadline) << "the thread does not come to rest";
    std::this_thread::yield();
  }
}

void BlockedThread::Join() {
  if (state_->thread.joinable()) state_->thread.join();
}

}  // namespace farandole::testing
