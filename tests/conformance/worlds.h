#pragma once

// Groups of threads that are connected by the real means, one kind after the other: what the conformance suites run
// over.

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "collectives/core/communicator.h"
#include "collectives/core/group.h"
#include "collectives/transport/control_channel.h"
#include "collectives/transport/transport.h"
#include "tools/base/clock.h"
#include "tools/base/instant.h"

namespace farandole::testing {

// kTcpLists: TCP where each member has several addresses, and the first ones that the others hear of lead nowhere and
// to another member. kTwoHosts: members whose hosts have two names, each with shared memory of its own: only
// communicators make a difference of that.
enum class Means { kInproc, kShm, kTcp, kTcpLists, kTwoHosts };
inline constexpr Means kAllMeans[] = {Means::kInproc, Means::kShm, Means::kTcp, Means::kTcpLists};
inline constexpr Means kCommunicatorMeans[] = {Means::kInproc, Means::kShm, Means::kTcp, Means::kTcpLists,
                                               Means::kTwoHosts};
std::string Name(Means means);
inline std::ostream& operator<<(std::ostream& out, Means means) { return out << Name(means); }

// Everything that the members of one group need to reach each other. Must outlive what it made.
class World {
 public:
  virtual ~World() = default;
  virtual GroupSpec spec(Rank rank) const = 0;
  // Once per rank; from any thread.
  virtual std::unique_ptr<Transport> MakeTransport(Rank rank) = 0;
  // The one that a worker would get by these means (cpu/create.h); once per rank, from any thread.
  virtual std::unique_ptr<Communicator> MakeCommunicator(Rank rank) = 0;
  virtual std::unique_ptr<ControlChannel> MakeControlChannel(Rank rank) = 0;
};
std::unique_ptr<World> MakeWorld(Means means, int size);

// The communicator over any transport.
std::unique_ptr<Communicator> MakeTransportCommunicator(std::unique_ptr<Transport> transport);

// Runs `body(rank)` for all ranks, each on its own thread; returns when all have returned.
void OnAllRanks(int size, const std::function<void(Rank)>& body);

// A thread of the process that runs something blocking.
class BlockedThread {
 public:
  explicit BlockedThread(std::function<void()> body);
  ~BlockedThread();
  // Returns once the thread sleeps in the kernel: it waits for something.
  void AwaitAsleep() const;
  void Join();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The deadline of what is expected to happen at once: so late that only a hang meets it.
inline Instant Eventually() { return Now() + absl::Seconds(60); }

}  // namespace farandole::testing
