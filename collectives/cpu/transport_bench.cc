// What collectives over TCP cost between processes of this host, without an engine:
//   transport_bench NP OP[,OP...] BYTES[,BYTES...] [ALGORITHM] [hosts]
// OP: allreduce, allgather, broadcast, alltoall, reducescatter, barrier. BYTES: of the tensor that each rank has in the
// end (reducescatter, broadcast: in the beginning). "hosts": as if each rank were on a host of its own, so links have
// several streams. Rank 0 prints a line of JSON for each: {"op": ..., "np": ..., "bytes": ..., "median_us": ...,
// "p99_us": ...}.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "collectives/core/communicator.h"
#include "collectives/cpu/create.h"
#include "collectives/transport/tcp/tcp_listener.h"
#include "tools/base/check.h"
#include "tools/base/clock.h"

namespace farandole {
namespace {

constexpr int kRanksMax = 64;

// What the processes tell each other before they have a communicator.
struct Board {
  std::atomic<int> ready{0};
  char endpoints[kRanksMax][128];
};

struct Plan {
  int np = 0;
  std::vector<std::string> ops;
  std::vector<int64_t> bytes;
  Algorithm algorithm = Algorithm::kAuto;
  bool hosts = false;
};

Instant Soon() { return Now() + absl::Seconds(60); }

int RepetitionsOf(int64_t bytes) {
  if (bytes <= 4096) return 3000;
  if (bytes <= 65536) return 1000;
  if (bytes <= (1 << 20)) return 150;
  if (bytes <= (16 << 20)) return 21;
  return bytes <= (64 << 20) ? 9 : 5;
}

// One collective of `bytes`, with memory that was touched before.
class Work {
 public:
  Work(Communicator& communicator, int64_t bytes)
      : communicator_(communicator),
        share_(bytes / communicator.size() / 4 * 4),
        in_(static_cast<size_t>(bytes), std::byte{0}),
        out_(static_cast<size_t>(bytes), std::byte{1}),
        shares_(communicator.size(), share_),
        counts_(communicator.size(), share_ / 4) {}

  absl::Status Run(absl::string_view op) {
    const int64_t n = communicator_.size();
    const auto all = absl::MakeSpan(out_).subspan(0, share_ * n);
    const auto given = absl::MakeConstSpan(in_);
    if (op == "allreduce") {
      return communicator_.AllReduce(in_.data(), out_.data(), in_.size() / 4, DType::kFloat32, ReduceOp::kSum, Soon());
    }
    if (op == "allgather") return communicator_.AllGather(given.subspan(0, share_), all, shares_, Soon());
    if (op == "broadcast") return communicator_.Broadcast(absl::MakeSpan(out_), 0, Soon());
    if (op == "alltoall") return communicator_.AllToAll(given.subspan(0, share_ * n), shares_, all, shares_, Soon());
    if (op == "reducescatter") {
      return communicator_.ReduceScatter(in_.data(), out_.data(), counts_, DType::kFloat32, ReduceOp::kSum, Soon());
    }
    if (op == "barrier") return communicator_.Barrier(Soon());
    return absl::InvalidArgumentError(absl::StrCat("no operation is called ", op));
  }

 private:
  Communicator& communicator_;
  const int64_t share_;
  std::vector<std::byte> in_;
  std::vector<std::byte> out_;
  const std::vector<int64_t> shares_;
  const std::vector<int64_t> counts_;
};

void Measure(Communicator& communicator, const std::string& op, int64_t bytes) {
  Work work(communicator, bytes);
  std::vector<double> microseconds;
  const int repetitions = RepetitionsOf(bytes);
  for (int i = -2; i < repetitions; ++i) {
    CHECK_OK(communicator.Barrier(Soon()));
    const Instant start = Now();
    CHECK_OK(work.Run(op));
    // The root is done when its bytes are on their way; that all have them is what counts.
    if (op == "broadcast") CHECK_OK(communicator.Barrier(Soon()));
    if (i >= 0) microseconds.push_back(absl::ToDoubleMicroseconds(Now() - start));
  }
  if (communicator.rank() != 0) return;
  std::sort(microseconds.begin(), microseconds.end());
  std::printf("{\"op\": \"%s\", \"np\": %d, \"bytes\": %lld, \"median_us\": %.2f, \"p99_us\": %.2f}\n", op.c_str(),
              communicator.size(), static_cast<long long>(bytes), microseconds[microseconds.size() / 2],
              microseconds[microseconds.size() * 99 / 100]);
  std::fflush(stdout);
}

int RunRank(const Plan& plan, Board& board, Rank rank) {
  TcpListener::Options options;
  options.incarnation = Incarnation(rank + 1);
  auto listener = TcpListener::Create(options);
  CHECK_OK(listener.status());
  (*listener)->Start("the key of this measurement");
  std::snprintf(board.endpoints[rank], sizeof board.endpoints[rank], "%s", (*listener)->endpoint().c_str());
  ++board.ready;
  while (board.ready < plan.np) ::usleep(1000);
  GroupSpec spec;
  spec.generation = Generation(1);
  spec.rank = rank;
  for (Rank r = 0; r < plan.np; ++r) {
    spec.members.push_back({plan.hosts ? absl::StrCat("host", r) : "host", Incarnation(r + 1), board.endpoints[r]});
  }
  auto communicator = CreateCommunicator(spec, TransportChoice::kTcp, listener->get(), nullptr, Soon());
  CHECK_OK(communicator.status());
  (*communicator)->Tune({plan.algorithm, plan.algorithm, 0});
  for (const std::string& op : plan.ops) {
    for (const int64_t bytes : plan.bytes) Measure(**communicator, op, bytes);
  }
  CHECK_OK((*communicator)->Barrier(Soon()));
  return 0;
}

int Usage() {
  std::fprintf(stderr, "transport_bench NP OP[,OP...] BYTES[,BYTES...] [ALGORITHM] [hosts]; NP from 1 to %d\n",
               kRanksMax);
  return 2;
}

int Main(int argc, char** argv) {
  Plan plan;
  if (argc < 4 || argc > 6 || !absl::SimpleAtoi(argv[1], &plan.np) || plan.np < 1 || plan.np > kRanksMax)
    return Usage();
  plan.ops = absl::StrSplit(argv[2], ',');
  for (absl::string_view word : absl::StrSplit(argv[3], ',')) {
    int64_t bytes = 0;
    if (!absl::SimpleAtoi(word, &bytes) || bytes < 0) return Usage();
    plan.bytes.push_back(bytes);
  }
  for (int i = 4; i < argc; ++i) {
    const auto algorithm = AlgorithmFromName(argv[i]);
    plan.hosts = plan.hosts || std::strcmp(argv[i], "hosts") == 0;
    if (!algorithm.has_value() && std::strcmp(argv[i], "hosts") != 0) return Usage();
    if (algorithm.has_value()) plan.algorithm = *algorithm;
  }
  void* shared = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(shared != MAP_FAILED) << "mmap";
  Board* board = new (shared) Board();
  for (Rank rank = 0; rank < plan.np; ++rank) {
    const pid_t child = ::fork();
    CHECK(child >= 0) << "fork";
    if (child == 0) ::_exit(RunRank(plan, *board, rank));
  }
  int code = 0;
  for (int i = 0; i < plan.np; ++i) {
    int status = 0;
    ::wait(&status);
    if (status != 0) code = 1;
  }
  return code;
}

}  // namespace
}  // namespace farandole

int main(int argc, char** argv) { return farandole::Main(argc, argv); }
