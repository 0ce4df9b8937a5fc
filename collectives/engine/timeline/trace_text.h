#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/string_view.h"

namespace farandole {

enum class TraceKind : uint8_t {
  kNegotiateBegin,  // name: the operation ("ALLREDUCE")
  kNegotiateRank,   // rank has asked for the tensor
  kNegotiateEnd,
  kBegin,  // of an operation, or nested in it of an activity (name)
  kEnd,    // of the innermost that has begun; dtype and shape for an operation that succeeded, else empty
  kCycle,  // no tensor
};

struct TraceEvent {
  TraceKind kind = TraceKind::kCycle;
  int64_t micros = 0;  // since the start of the trace
  std::string tensor;  // name on the wire ("allreduce.loss")
  std::string name;
  int rank = 0;       // in the process set
  std::string dtype;  // "float32"
  std::string shape;  // "[4, 2]"
};

// Events as the elements of a Chrome trace array, in the form that tools for the original read: every tensor is a
// process, numbered from 1 at its first use. Each element begins with ",\n" but the very first. Pure.
class TraceText {
 public:
  // The first elements: the wall time of the start, microseconds since 1970.
  void AppendHeader(int64_t epoch_micros, std::string* out);
  void Append(const TraceEvent& event, std::string* out);
  // Says that `count` events are missing here. Begins without their end are to be expected around it.
  void AppendDropped(int64_t count, int64_t micros, std::string* out);

 private:
  int PidOf(absl::string_view tensor, std::string* out);

  std::map<std::string, int, std::less<>> pids_;
};

// With quotes. Control characters are escaped, bytes that are no UTF-8 become U+FFFD.
std::string JsonString(absl::string_view text);

}  // namespace farandole
