#include "collectives/transport/shm_control/shm_control_channel.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/types/optional.h"
#include "collectives/transport/checks.h"
#include "collectives/transport/shm/common_memory.h"
#include "collectives/transport/shm/spin.h"
#include "collectives/transport/shm_control/message_link.h"
#include "tools/base/clock.h"
#include "tools/base/mutex.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

constexpr CommonMemory::Use kUse{"control", 1};

class ShmControlChannel : public ControlChannel, public SharedWaiting {
 public:
  ShmControlChannel(const GroupSpec& spec, std::unique_ptr<CommonMemory> memory,
                    std::unique_ptr<ControlChannel> sentinel)
      : spec_(spec),
        memory_(std::move(memory)),
        spin_(spec.size()),
        sentinel_(std::move(sentinel)),
        losses_(spec.size()) {
    for (Rank peer = 0; peer < spec_.size(); ++peer) {
      const bool linked = spec_.rank == 0 ? peer != 0 : peer == 0;
      const Rank owner = spec_.rank == 0 ? peer : spec_.rank;
      if (!linked) continue;
      std::byte* const at = memory_->payload() + (owner - 1) * MessageLink::kBytes;
      peers_.push_back(peer);
      links_.push_back(std::make_unique<MessageLink>(at, spec_.rank == 0));
    }
    if (sentinel_ != nullptr) watch_ = std::thread([this] { Watch(); });
  }

  ~ShmControlChannel() override { EndWatch(); }

  Rank rank() const override { return spec_.rank; }
  int size() const override { return spec_.size(); }
  SharedWaiting* shared_waiting() override { return this; }

  absl::Status Send(Rank to, std::string message) override {
    RETURN_IF_ERROR(CheckControlSend(spec_.rank, spec_.size(), to, message));
    MessageLink& link = *links_[spec_.rank == 0 ? to - 1 : 0];
    if (link.reported) return absl::OkStatus();
    link.Queue(message);
    if (link.Flush()) memory_->Notify(to);
    return absl::OkStatus();
  }

  Event Receive(Instant deadline) override {
    while (true) {
      if (absl::optional<Event> event = Look()) return *std::move(event);
      if (deadline <= Now()) return {};
      if (!spin_.Until([this] { return HasSomething(); })) {
        memory_->Sleep(deadline, [this] { return HasSomething(); });
      }
    }
  }

  void Wake() override {
    woken_.store(true);
    memory_->Notify(spec_.rank);
  }

  void Wait(Instant deadline) override {
    waits_.store(true);
    memory_->Sleep(deadline, [this] { return HasSomething(); });
    waits_.store(false);
  }

  void Attend() override {
    attending_.fetch_add(1);
    memory_->SetSleeping(false);
  }

  // The sleeper's announcement is put back; what came before the others could see it is for us to see.
  void Unattend() override {
    if (attending_.fetch_sub(1) > 1 || !waits_.load()) return;
    memory_->SetSleeping(true);
    if (HasSomething()) memory_->Ring(spec_.rank);
  }

  void Close(Instant deadline) override {
    while (FlushAll(), HasQueued() && Now() < deadline) {
      memory_->Sleep(deadline, [this] { return CanFlush(); });
    }
    EndWatch();
    if (sentinel_ != nullptr) sentinel_->Close(deadline);
    memory_->Leave();
  }

 private:
  // The next event, if there is one.
  absl::optional<Event> Look() {
    if (woken_.load(std::memory_order_relaxed) && woken_.exchange(false)) return Event{Event::kWoken, spec_.rank, ""};
    FlushAll();
    for (size_t i = 0; i < links_.size(); ++i) {
      next_ = (next_ + 1) % links_.size();  // so that a talkative one does not silence the others
      if (links_[next_]->reported) continue;
      if (absl::optional<Event> event = LookAt(peers_[next_], *links_[next_])) return event;
    }
    return absl::nullopt;
  }

  // What a peer wrote before it went is still received: so first whether it is gone, then whether something is there.
  absl::optional<Event> LookAt(Rank peer, MessageLink& link) {
    const bool gone = link.gone || memory_->HasLeft(peer);
    bool moved = false;
    absl::StatusOr<absl::optional<std::string>> message = link.Take(&moved);
    if (moved) memory_->Notify(peer);
    if (message.ok() && message->has_value()) return Event{Event::kMessage, peer, **std::move(message)};
    if (message.ok() && !gone) return absl::nullopt;
    link.reported = true;
    return Event{Event::kPeerLost, peer, message.ok() ? HowLost(peer) : std::string(message.status().message())};
  }

  std::string HowLost(Rank peer) {
    MutexLock lock(&mutex_);
    return losses_[peer].empty() ? "it has left the group" : losses_[peer];
  }

  // Whether Look would find something, or move something on. From any thread.
  bool HasSomething() const {
    if (woken_.load()) return true;
    for (size_t i = 0; i < links_.size(); ++i) {
      const MessageLink& link = *links_[i];
      if (link.reported) continue;
      if (link.HasIncoming() || link.CanFlush() || link.gone || memory_->HasLeft(peers_[i])) return true;
    }
    return false;
  }

  void FlushAll() {
    for (size_t i = 0; i < links_.size(); ++i) {
      if (links_[i]->has_queued() && links_[i]->Flush()) memory_->Notify(peers_[i]);
    }
  }
  bool CanFlush() const {
    return std::any_of(links_.begin(), links_.end(), [](const auto& link) { return link->CanFlush(); });
  }
  // For somebody who still reads.
  bool HasQueued() const {
    for (size_t i = 0; i < links_.size(); ++i) {
      if (links_[i]->has_queued() && !links_[i]->gone && !memory_->HasLeft(peers_[i])) return true;
    }
    return false;
  }

  // The sentinel's thread.
  void Watch() {
    while (true) {
      Event event = sentinel_->Receive(Instant::Infinite());
      if (event.kind == Event::kWoken) return;
      if (event.kind != Event::kPeerLost) continue;
      {
        MutexLock lock(&mutex_);
        losses_[event.from] = std::move(event.message);
      }
      links_[spec_.rank == 0 ? event.from - 1 : 0]->gone = true;
      memory_->Ring(spec_.rank);
    }
  }
  void EndWatch() {
    if (!watch_.joinable()) return;
    sentinel_->Wake();
    watch_.join();
  }

  const GroupSpec spec_;
  const std::unique_ptr<CommonMemory> memory_;
  const Spin spin_;
  const std::unique_ptr<ControlChannel> sentinel_;
  std::vector<Rank> peers_;  // of links_
  std::vector<std::unique_ptr<MessageLink>> links_;
  size_t next_ = 0;
  std::atomic<bool> woken_{false};
  std::atomic<bool> waits_{false};  // a thread is in Wait
  std::atomic<int> attending_{0};

  Mutex mutex_;
  std::vector<std::string> losses_ ABSL_GUARDED_BY(mutex_);  // by peer, in words
  std::thread watch_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ControlChannel>> CreateShmControlChannel(const GroupSpec& spec, SlabSource& source,
                                                                        std::unique_ptr<ControlChannel> sentinel,
                                                                        Instant deadline) {
  ASSIGN_OR_RETURN(std::unique_ptr<CommonMemory> memory,
                   CommonMemory::Open(spec, source, kUse, (spec.size() - 1) * MessageLink::kBytes, deadline));
  return std::make_unique<ShmControlChannel>(spec, std::move(memory), std::move(sentinel));
}

}  // namespace farandole
