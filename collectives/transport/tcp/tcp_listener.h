#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "collectives/core/group.h"
#include "collectives/transport/tcp/candidates.h"
#include "collectives/transport/tcp/handshake_io.h"
#include "collectives/transport/tcp/listen_sockets.h"
#include "collectives/transport/tcp/proven_endpoints.h"
#include "collectives/transport/tcp/wake_fd.h"
#include "collectives/transport/tcp/wire.h"
#include "tools/base/ids.h"
#include "tools/base/instant.h"
#include "tools/base/mutex.h"
#include "tools/base/unique_fd.h"

namespace farandole {

class TcpListener;

// Where the links of one group, of one purpose, arrive at this rank. The listener must outlive it. Take belongs to one
// thread.
class TcpInbox {
 public:
  struct Arrival {
    Rank from;
    int stream;
    UniqueFd fd;
  };

  ~TcpInbox();

  // Readable when Take has something to give.
  int fd() const { return wake_.get(); }
  absl::optional<Arrival> Take();

 private:
  friend class TcpListener;
  struct Key {
    Generation generation;
    uint32_t group;
    LinkPurpose purpose;
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  TcpInbox(TcpListener* listener, Key key, GroupSpec spec) : listener_(listener), key_(key), spec_(std::move(spec)) {}
  void Put(Arrival arrival);

  TcpListener* const listener_;
  const Key key_;
  const GroupSpec spec_;
  WakeFd wake_;
  Mutex mutex_;  // taken while the listener's is held, never the other way round
  std::deque<Arrival> arrivals_ ABSL_GUARDED_BY(mutex_);
};

// Accepts the TCP links of a worker, for all its groups and generations: it lives as long as the process. One thread
// accepts and runs handshakes (handshake.h); a connection whose peer does not prove the job's key in time is closed,
// and nothing of it is read but that. Then the link goes to the inbox of its group. A member may learn of a generation
// before this one does, so a link of a group that is not known yet is kept, until a newer generation is registered.
//
// Thread-safe.
class TcpListener {
 public:
  struct Options {
    std::vector<std::string> addresses = {"127.0.0.1"};  // numeric; where to listen, and nowhere else
    PortRange ports;
    Incarnation incarnation;  // this process

    // A peer on the same network needs milliseconds.
    absl::Duration handshake_timeout = absl::Seconds(10);
    // Connections whose handshake is under way. One more waits until one of them is over, or the oldest is this old and
    // is closed for it: so a stranger who opens many cannot keep honest ones out, nor do many honest ones that come at
    // once.
    int unproven_max = 256;
    absl::Duration unproven_grace = absl::Milliseconds(200);
    // Links of groups that are not known yet. One more is closed.
    int parked_max = 1024;
  };

  // What became of connections, since the start.
  struct Stats {
    int64_t delivered = 0;  // to an inbox
    // No greeting, no key, not meant for this process, or not a member of the group; or it went before it was proven,
    // as a member does that has got through at another address.
    int64_t refused = 0;
    int64_t expired = 0;  // the handshake took too long
    int64_t crowded = 0;  // too many unproven or parked ones
    int64_t stale = 0;    // of a generation or a group that is over
  };

  // Errors: those of ListenOnAll.
  static absl::StatusOr<std::unique_ptr<TcpListener>> Create(Options options);
  ~TcpListener();

  // "ADDRESS:PORT,ADDRESS:PORT": what this worker's GroupMember::endpoint must be.
  const std::string& endpoint() const { return endpoint_; }
  const std::vector<OwnAddress>& addresses() const { return addresses_; }

  // For those who make links from this process.
  ProvenEndpoints& proven() { return proven_; }
  const ProvenEndpoints& proven() const { return proven_; }

  // Begins to accept from those who prove `key`, the job's, not empty. Once, before the first group is made.
  void Start(std::string key);
  const std::string& key() const { return key_; }  // empty before Start

  // Links of `purpose` for the group of `spec` go to the result until it is destroyed, and are closed after that. Ends
  // what is parked for older generations, and refuses it from now on. CHECKs that there is no such inbox yet.
  std::unique_ptr<TcpInbox> Register(const GroupSpec& spec, LinkPurpose purpose);

  Stats stats() const;

 private:
  friend class TcpInbox;
  struct Unproven {
    HandshakeIo io;
    Instant since;
    short events;
  };
  struct Parked {
    LinkClaim claim;
    UniqueFd fd;
  };

  TcpListener(Options options, std::vector<ListenSocket> sockets);

  // The thread.
  void Run();
  void PollOnce();
  void AcceptAll(int listener);
  // When to accept the next one at the earliest.
  Instant AcceptFrom() const;
  bool Full() const { return static_cast<int>(unproven_.size()) >= options_.unproven_max; }
  // Whether `unproven` stays unproven.
  bool Advance(Unproven& unproven);
  void Expire();
  Instant NextDeadline() const;

  void Deliver(const LinkClaim& claim, UniqueFd fd);
  bool TryDeliverLocked(const LinkClaim& claim, UniqueFd& fd) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Unregister(TcpInbox* inbox);
  void Count(int64_t Stats::*what);

  const Options options_;
  std::vector<UniqueFd> fds_;
  std::string endpoint_;
  std::vector<OwnAddress> addresses_;  // of fds_
  ProvenEndpoints proven_;
  std::string key_;  // written before the thread starts
  WakeFd stop_;

  // Of the thread only.
  std::list<Unproven> unproven_;  // the oldest first
  Instant accept_from_;           // after an error of the system (too many open files) it pauses
  bool stopping_ = false;

  mutable Mutex mutex_;
  std::map<TcpInbox::Key, TcpInbox*> inboxes_ ABSL_GUARDED_BY(mutex_);
  std::set<TcpInbox::Key> ended_ ABSL_GUARDED_BY(mutex_);  // of the newest generation
  std::list<Parked> parked_ ABSL_GUARDED_BY(mutex_);
  Generation newest_ ABSL_GUARDED_BY(mutex_);
  Stats stats_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;
};

}  // namespace farandole
