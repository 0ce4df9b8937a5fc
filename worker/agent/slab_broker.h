#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/base/event_loop.h"
#include "tools/base/unique_fd.h"
#include "tools/base/unix_socket.h"

namespace farandole {

// What one agent gives out, at most.
struct SlabLimits {
  // Each holds a descriptor of the agent's. A group asks for one or a few per host.
  int slabs = 256;
  // Of all slabs together; memory is taken only where it is touched. 0: half of the machine's memory.
  int64_t bytes = 0;
};

// Gives the workers of this host memory that they share: anonymous files (memfd), sealed against growing and shrinking
// so that no member can take it from under another, passed over an abstract unix socket to this user and root only.
// They have no name in any file system and are gone with their last user. worker/agent/slab_client.h is the other end,
// slab_wire.h what they say.
//
// Errors of a request: InvalidArgument: the name, the size, or another size than the first request for the name had;
// ResourceExhausted: the limits above, or the system's.
//
// Threads: all of it belongs to the loop's.
class SlabBroker {
 public:
  // Errors: those of the system.
  static absl::StatusOr<std::unique_ptr<SlabBroker>> Start(EventLoop* loop, SlabLimits limits);
  ~SlabBroker();
  SlabBroker(const SlabBroker&) = delete;
  SlabBroker& operator=(const SlabBroker&) = delete;

  // The name of the abstract socket.
  const std::string& socket() const { return listener_.name; }

  // Forgets all slabs: those of older generations, when a new one begins. Who has one keeps it. Called before any
  // worker learns of the new generation.
  void ForgetAll();

  // How many are remembered.
  int slabs() const { return static_cast<int>(slabs_.size()); }

 private:
  struct Slab {
    UniqueFd memory;
    int64_t bytes;
  };

  SlabBroker(EventLoop* loop, SlabLimits limits, AbstractListener listener);
  void Accept();
  void Serve(int connection);
  absl::StatusOr<int> Find(absl::string_view name, int64_t bytes);  // a descriptor that stays the broker's

  EventLoop* const loop_;
  const SlabLimits limits_;
  const AbstractListener listener_;
  std::map<int, UniqueFd> connections_;  // by descriptor
  std::map<std::string, Slab> slabs_;    // by name
  int64_t bytes_ = 0;                    // of all slabs
};

}  // namespace farandole
