#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/time/time.h"
#include "driver/core/ids.h"
#include "driver/runtime/output_sink.h"
#include "proto/convert/driver_convert.h"
#include "tools/base/instant.h"

namespace farandole {

// The thread that writes the workers' output, so that a terminal that takes nothing holds back the workers (by their
// agents' credit) and nothing else. Keeps the order in which it was given the pieces. What it holds is bounded by the
// credit that agents have.
//
// Thread-safe.
class OutputWriter {
 public:
  // Tells an agent that `bytes` of its output have been written; from the writer's thread.
  using ReturnCredit = std::function<void(const AgentIdentity& agent, int64_t bytes)>;

  // `sink` outlives the writer. Credit is given back when `credit_step` bytes of an agent are written, or all.
  OutputWriter(OutputSink* sink, int64_t credit_step, ReturnCredit return_credit);
  // Ends the thread if all is written. If the sink holds it, it is left behind with the sink (see Finish).
  ~OutputWriter();

  // What a worker writes is dropped before this.
  void AddWorker(const WorkerId& worker, int rank);

  void Write(const AgentIdentity& from, OutputPiece piece);
  void End(OutputEnd end);

  // How long the sink has been holding the piece that is being written; zero if none is.
  absl::Duration HeldFor(Instant now) const;

  // Returns when all is written: true; or, after HurryUp(), when the sink has held the rest for another second: false,
  // and then the sink is still inside a call of Write() and must not be destroyed. Nothing is taken after this. Called
  // by one thread.
  bool Finish();
  void HurryUp();

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
  bool finished_ = false;
};

}  // namespace farandole
