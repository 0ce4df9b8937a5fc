// Times Gloo's collectives over TCP on loopback, for comparison with `farandole bench`. Compiled by tools/bench where
// Gloo is installed (Debian's libgloo-dev), not by Bazel. It forks its own processes: collective_gloo NP OP BYTES
// SECONDS.
#include <gloo/allgatherv.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <exception>
#include <memory>

#include "tests/bench/collective_peer.h"

namespace farandole::bench {
namespace {

class Collectives {
 public:
  Collectives(int rank, int size, const std::string& folder) {
    gloo::transport::tcp::attr attributes;
    attributes.hostname = "127.0.0.1";
    gloo::rendezvous::FileStore store(folder);
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
    context->connectFullMesh(store, device_ = gloo::transport::tcp::CreateDevice(attributes));
    context_ = context;
  }

  bool Once(const std::string& op, PeerTensors& t) {
    if (op == "allreduce") return AllReduce(t);
    if (op == "allgather") return AllGather(t);
    if (op == "broadcast") return Broadcast(t.output.data(), t.count) && Barrier();
    if (op == "alltoall") return AllToAll(t);
    return op == "barrier" && Barrier();
  }

  bool Agree(int64_t* number) { return Broadcast(number, 1) && Barrier(); }

 private:
  bool AllReduce(PeerTensors& t) {
    gloo::AllreduceOptions options(context_);
    options.setInput(t.input.data(), t.count);
    options.setOutput(t.output.data(), t.count);
    options.setReduceFunction([](void* to, const void* a, const void* b, size_t n) { gloo::sum<float>(to, a, b, n); });
    gloo::allreduce(options);
    return true;
  }

  bool AllGather(PeerTensors& t) {
    gloo::AllgathervOptions options(context_);
    options.setInput(t.input.data(), t.input.size());
    options.setOutput(t.output.data(), std::vector<size_t>(t.shares.begin(), t.shares.end()));
    gloo::allgatherv(options);
    return true;
  }

  template <typename T>
  bool Broadcast(T* data, size_t count) {
    gloo::BroadcastOptions options(context_);
    options.setOutput(data, count);
    options.setRoot(0);
    gloo::broadcast(options);
    return true;
  }

  bool AllToAll(PeerTensors& t) {
    gloo::AlltoallOptions options(context_);
    options.setInput(t.input.data(), t.count);
    options.setOutput(t.output.data(), t.count);
    gloo::alltoall(options);
    return true;
  }

  bool Barrier() {
    gloo::BarrierOptions options(context_);
    gloo::barrier(options);
    return true;
  }

  std::shared_ptr<gloo::transport::Device> device_;
  std::shared_ptr<gloo::Context> context_;
};

int RunRank(const PeerRequest& request, int rank, int size, const std::string& folder) {
  try {
    Collectives collectives(rank, size, folder);
    return MeasurePeer(
        request, size, rank, "tcp", [&](PeerTensors& tensors) { return collectives.Once(request.op, tensors); },
        [&](int64_t* number) { return collectives.Agree(number); });
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
    return 1;
  }
}

int RunAll(int size, const PeerRequest& request) {
  char folder[] = "/tmp/collective_gloo.XXXXXX";
  if (::mkdtemp(folder) == nullptr) return 1;
  std::fflush(nullptr);
  for (int rank = 0; rank < size; ++rank) {
    if (::fork() != 0) continue;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int code = RunRank(request, rank, size, folder);
    std::fflush(nullptr);
    ::_exit(code);
  }
  int worst = 0;
  for (int how = 0; ::wait(&how) > 0;) {
    if (how != 0 && worst == 0) ::kill(0, SIGTERM);
    worst = how != 0 ? 1 : worst;
  }
  const std::string clean = std::string("rm -rf ") + folder;
  return std::system(clean.c_str()) == 0 ? worst : 1;
}

}  // namespace
}  // namespace farandole::bench

int main(int argc, char** argv) {
  std::signal(SIGTERM, SIG_IGN);  // the parent ends its children by it, and itself in order
  const int size = argc > 1 ? std::atoi(argv[1]) : 0;
  if (size < 1) {
    std::fprintf(stderr, "usage: %s NP OP BYTES,BYTES SECONDS\n", argv[0]);
    return 2;
  }
  return farandole::bench::RunAll(size, farandole::bench::ReadPeerRequest(argc - 1, argv + 1));
}
