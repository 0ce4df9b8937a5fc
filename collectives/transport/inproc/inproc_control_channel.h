#pragma once

#include <cstdint>
#include <memory>

#include "collectives/core/group.h"
#include "collectives/transport/control_channel.h"

namespace farandole {

// The control channels of one group whose members are threads of one process, with scripted faults. For tests.
//
//   InprocControlGroup group(3);
//   std::unique_ptr<ControlChannel> zero = group.Join(0);
//
// Differs from the real one: Send never has to queue (memory is the only bound), so Close has nothing left to send. A
// channel that is destroyed without Close looks to its peers like a process that died.
//
// Thread-safe. May be destroyed before its channels.
class InprocControlGroup {
 public:
  explicit InprocControlGroup(int size);
  ~InprocControlGroup();

  // The channel of `rank`; once per rank.
  std::unique_ptr<ControlChannel> Join(Rank rank);

  // Ends the link between rank 0 and `rank` (> 0) once `rank` has sent `messages` more messages: at once for 0. What
  // was sent before is still received; both ends see kPeerLost after it.
  void CutLink(Rank rank, int64_t messages = 0);

  // Rank 0's inbox stays empty of what `rank` (> 0) sends from now on, until Resume: a process that is alive and says
  // nothing.
  void Stall(Rank rank);
  void Resume(Rank rank);

 private:
  class Hub;
  class Channel;

  // Shared with the channels: the last of them ends it.
  std::shared_ptr<Hub> hub_;
};

}  // namespace farandole
