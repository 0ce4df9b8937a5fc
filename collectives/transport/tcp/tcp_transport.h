#pragma once

#include <memory>

#include "collectives/core/group.h"
#include "collectives/transport/tcp/tcp_listener.h"
#include "collectives/transport/transport.h"

namespace farandole {

// The transport of a group over TCP. A link carries bytes one way and is made when it is first sent over, by connecting
// to the receiver's listener: a ring of ranks makes two links per rank.
//
// A peer that ends closes its links, which is reported to those who use them at that moment. A host that is cut off
// without a word is not noticed here: whoever watches hosts calls Abort().
//
// `listener` is this worker's and must outlive the result.
std::unique_ptr<Transport> CreateTcpTransport(const GroupSpec& spec, TcpListener& listener);

}  // namespace farandole
