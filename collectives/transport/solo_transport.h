#pragma once

#include <utility>

#include "collectives/core/finish_state.h"
#include "collectives/transport/checks.h"
#include "collectives/transport/transport.h"
#include "tools/base/status_macros.h"

namespace farandole {

// The transport of a group of one: there is nobody to talk to, but it can be aborted.
class SoloTransport : public Transport {
 public:
  // `spec` has one member.
  explicit SoloTransport(GroupSpec spec) : spec_(std::move(spec)) {}

  Rank rank() const override { return 0; }
  int size() const override { return 1; }

  absl::Status Post(uint64_t operation, Rank to, absl::Span<const std::byte> bytes) override {
    RETURN_IF_ERROR(CheckPost(spec_, to, bytes));
    return finish_.CheckStart();
  }
  absl::Status Receive(uint64_t operation, Rank from, absl::Span<std::byte> bytes, Instant deadline) override {
    RETURN_IF_ERROR(CheckReceive(spec_, from, bytes));
    return finish_.CheckStart();
  }
  absl::Status Flush(Instant deadline) override { return finish_.CheckStart(); }

  void Abort(absl::string_view reason) override { finish_.Abort(reason); }

 private:
  const GroupSpec spec_;
  FinishState finish_;
};

}  // namespace farandole
