#pragma once

// Groups of communicators, one kind after the other, for threads of this process: what the suites run over.

#include <memory>
#include <ostream>
#include <string>

#include "collectives/core/communicator.h"
#include "collectives/core/group.h"

namespace farandole::testing {

// kInproc, kRings, kTcp: a TransportCommunicator over that transport, with small chunks. kFlat: a FlatCommunicator.
enum class Kind { kInproc, kRings, kFlat, kTcp };
inline constexpr Kind kAllKinds[] = {Kind::kInproc, Kind::kRings, Kind::kFlat, Kind::kTcp};
std::string Name(Kind kind);
inline std::ostream& operator<<(std::ostream& out, Kind kind) { return out << Name(kind); }

// What the members need to reach each other. Must outlive what it made.
class Communicators {
 public:
  virtual ~Communicators() = default;
  // Once per rank; from any thread.
  virtual std::unique_ptr<Communicator> Make(Rank rank) = 0;
};
std::unique_ptr<Communicators> MakeCommunicators(Kind kind, int size);

}  // namespace farandole::testing
