#pragma once

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "collectives/core/group.h"
#include "collectives/cpu/create.h"
#include "collectives/transport/slab_source.h"
#include "collectives/transport/tcp/tcp_listener.h"

namespace farandole {

// What one process of a forked group has to make a communicator of.
struct ForkedMember {
  GroupSpec spec;
  TransportChoice transport = TransportChoice::kShm;
  TcpListener* listener = nullptr;
  SlabSource* slabs = nullptr;
};

// Runs `body` in `size` processes forked from this one, which is to have no threads, as the members of a group on this
// machine, and waits for all. The first one that fails (its body returns an error, which it prints to stderr, or it is
// killed) ends the others: the result says which.
absl::Status RunForkedGroup(int size, TransportChoice transport,
                            const std::function<absl::Status(const ForkedMember&)>& body);

}  // namespace farandole
