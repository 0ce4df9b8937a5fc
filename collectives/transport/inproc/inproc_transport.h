#pragma once

#include <cstdint>
#include <memory>

#include "collectives/core/group.h"
#include "collectives/transport/transport.h"

namespace farandole {

// The transports of one group whose members are threads of one process, with scripted faults. For tests.
//
// A link holds at least one message whatever its length, and takes further ones while it holds less than 64 KiB: so a
// sender runs ahead of its receiver and is held up, as with the real ones, but never inside a message. A transport that
// is destroyed looks to its peers like a process that ended.
//
// Thread-safe. May be destroyed before its transports.
class InprocTransportGroup {
 public:
  explicit InprocTransportGroup(int size);
  ~InprocTransportGroup();

  // Who is in it, as `rank` sees it: rank r is on host "host<r>".
  GroupSpec spec(Rank rank) const;

  // The transport of `rank`; once per rank.
  std::unique_ptr<Transport> Join(Rank rank);

  // All links of `rank` end once it has sent `messages` more messages: at once for 0. Its peers still receive those.
  void CutLinks(Rank rank, int64_t messages = 0);

  // What `rank` has sent and nobody received yet, and what it sends from now on, is held back until Resume: a process
  // that is alive and does not move.
  void Stall(Rank rank);
  void Resume(Rank rank);

 private:
  class Hub;
  class Link;

  // Shared with the transports: the last of them ends it.
  std::shared_ptr<Hub> hub_;
};

}  // namespace farandole
