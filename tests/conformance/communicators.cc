#include "tests/conformance/communicators.h"

#include <utility>

#include "collectives/core/tuning.h"
#include "collectives/cpu/flat/flat_communicator.h"
#include "collectives/cpu/transport_communicator.h"
#include "collectives/transport/shm/local_slab_source.h"
#include "tests/conformance/worlds.h"
#include "tools/base/check.h"

namespace farandole::testing {
namespace {

// Little data must make many chunks, and take the long ways.
constexpr TransportCommunicator::Options kSmallChunks{.chunk_bytes = 4096, .short_bytes = 1024};

class OverTransports : public Communicators {
 public:
  OverTransports(Means means, int size) : world_(MakeWorld(means, size)) {}
  std::unique_ptr<Communicator> Make(Rank rank) override {
    return std::make_unique<TransportCommunicator>(world_->MakeTransport(rank), kSmallChunks);
  }

 private:
  const std::unique_ptr<World> world_;
};

class Flat : public Communicators {
 public:
  explicit Flat(int size) : world_(MakeWorld(Means::kShm, size)), alone_(size == 1) {}
  std::unique_ptr<Communicator> Make(Rank rank) override {
    if (alone_) return std::make_unique<TransportCommunicator>(world_->MakeTransport(rank));  // as CreateCommunicator
    auto made = CreateFlatCommunicator(world_->spec(rank), slabs_, Eventually());
    CHECK(made.ok()) << made.status();
    CollectiveTuning small;
    small.chunk_bytes = 8192;
    (*made)->Tune(small);
    return *std::move(made);
  }

 private:
  const std::unique_ptr<World> world_;
  const bool alone_;
  LocalSlabSource slabs_;
};

}  // namespace

std::string Name(Kind kind) {
  switch (kind) {
    case Kind::kInproc:
      return "inproc";
    case Kind::kRings:
      return "rings";
    case Kind::kFlat:
      return "flat";
    case Kind::kTcp:
      return "tcp";
  }
  return "unknown";
}

std::unique_ptr<Communicators> MakeCommunicators(Kind kind, int size) {
  switch (kind) {
    case Kind::kInproc:
      return std::make_unique<OverTransports>(Means::kInproc, size);
    case Kind::kRings:
      return std::make_unique<OverTransports>(Means::kShm, size);
    case Kind::kFlat:
      return std::make_unique<Flat>(size);
    case Kind::kTcp:
      return std::make_unique<OverTransports>(Means::kTcp, size);
  }
  return nullptr;
}

}  // namespace farandole::testing
