#pragma once

#include "absl/strings/string_view.h"
#include "driver/core/ids.h"

namespace farandole {

// Where the workers' output goes. launcher/exec has the terminal and the files; tests collect it.
class OutputSink {
 public:
  virtual ~OutputSink() = default;

  // Takes bytes that `worker` wrote (mostly whole lines, but of a result any bytes; see proto/v1 Output). Called from
  // the driver's output thread, apart from its loop: it may block for as long as a person's terminal does, and then the
  // workers wait, but nothing else.
  virtual void Write(const WorkerId& worker, int rank, OutputStream stream, absl::string_view data) = 0;

  // All streams of `worker` are at their end. Same thread.
  virtual void End(const WorkerId& worker, int rank) = 0;
};

}  // namespace farandole
