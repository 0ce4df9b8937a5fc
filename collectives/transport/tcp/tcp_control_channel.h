#pragma once

#include <memory>

#include "collectives/core/group.h"
#include "collectives/transport/control_channel.h"
#include "collectives/transport/tcp/tcp_listener.h"

namespace farandole {

// The control channel of a group over TCP: a star around rank 0, to whose listener the others connect. Returns at once;
// links are made inside Send and Receive, and what is sent before there is a link goes with it. A rank that never
// connects is not reported: its agent knows more. A rank that cannot connect sees kPeerLost of rank 0.
//
// `listener` is this worker's and must outlive the result.
std::unique_ptr<ControlChannel> CreateTcpControlChannel(const GroupSpec& spec, TcpListener& listener);

}  // namespace farandole
