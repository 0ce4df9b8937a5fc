#pragma once

#include <memory>

#include "collectives/core/group.h"
#include "collectives/transport/tcp/tcp_listener.h"
#include "collectives/transport/transport.h"

namespace farandole {

// The transport of a group over TCP. A link carries bytes one way and is made when it is first sent over, by connecting
// to the receiver's listener: a ring of ranks makes two links per rank. Between hosts a link is several connections,
// over which long messages are striped (stripes.h); those after the first are made when the first long message goes.
//
// A rank that waits asks for its bytes for 200 us before it sleeps, unless there are more
// ranks of the group on its machine than processors.
//
// A peer that ends closes its links, which is reported to those who use them at that moment. A host that is cut off
// without a word is noticed by the keep-alive of the connections after a minute or two: whoever watches hosts sees it
// sooner and calls Abort().
//
// `listener` is this worker's and must outlive the result.
std::unique_ptr<Transport> CreateTcpTransport(const GroupSpec& spec, TcpListener& listener);

}  // namespace farandole
