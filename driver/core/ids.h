#pragma once

#include <compare>
#include <ostream>
#include <string>

#include "tools/base/ids.h"

namespace farandole {

// A place for a worker on a host.
struct SlotId {
  std::string host;
  int slot = 0;
  friend auto operator<=>(const SlotId&, const SlotId&) = default;
};

// One start of a worker in a slot.
struct WorkerId {
  SlotId slot;
  Incarnation incarnation;
  friend auto operator<=>(const WorkerId&, const WorkerId&) = default;
};

// "a/0": how transcripts and logs name a slot and, when its incarnation does not matter, a worker.
inline std::ostream& operator<<(std::ostream& out, const SlotId& id) { return out << id.host << "/" << id.slot; }
inline std::ostream& operator<<(std::ostream& out, const WorkerId& id) { return out << id.slot; }

// A worker's place in a generation; everything counts from 0.
struct Placement {
  int rank = 0, size = 0;
  int local_rank = 0, local_size = 0;
  int cross_rank = 0, cross_size = 0;
  friend bool operator==(const Placement&, const Placement&) = default;
};

// How a process ended.
struct ExitStatus {
  int code = 0;    // when signal is 0
  int signal = 0;  // the number of the signal that ended it, or 0

  bool success() const { return code == 0 && signal == 0; }
  // What a shell would call it: the code, or 128 + signal.
  int shell_code() const { return signal != 0 ? 128 + signal : code; }
  friend bool operator==(const ExitStatus&, const ExitStatus&) = default;
};

// An address that a host has.
struct OfferedAddress {
  std::string interface;  // "eth0"
  std::string address;    // numeric
  int prefix_length = 0;  // of its network
  friend bool operator==(const OfferedAddress&, const OfferedAddress&) = default;
};

// Which of a worker's streams. A result is for the launcher: it has no lines, and no person sees it.
enum class OutputStream { kStdout, kStderr, kResult };

}  // namespace farandole
