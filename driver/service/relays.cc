#include "driver/service/relays.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <map>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "driver/service/peer_certificate.h"
#include "driver/service/relay_call.h"
#include "proto/rpc/relay_pump.h"
#include "tools/base/clock.h"
#include "tools/base/errno_status.h"
#include "tools/base/event_loop.h"
#include "tools/base/random_bytes.h"
#include "tools/base/unique_fd.h"

namespace farandole {
namespace {

constexpr size_t kLongestWords = 1000;  // of an agent's error

grpc::Status Refusal(grpc::StatusCode code, const std::string& text) { return grpc::Status(code, text); }

class RelaysImpl final : public Relays {
 public:
  explicit RelaysImpl(std::string job) : job_(std::move(job)), thread_([this] { loop_.Run(); }) {}

  ~RelaysImpl() override {
    Close();
    Stop();
  }

  uint64_t Await(const AgentIdentity& via, const std::string& target, Instant deadline, RelayDone done) override {
    const uint64_t id = RandomId();
    loop_.Post([this, id, via, target, deadline, done = std::move(done)]() mutable {
      if (closed_) return done(absl::UnavailableError("the driver is ending"));
      const EventLoop::TimerId timer = loop_.At(
          deadline, [this, id] { Answer(id, absl::DeadlineExceededError("the agent there did not answer in time")); });
      awaited_.emplace(id, Awaited{via, target, std::move(done), timer});
    });
    return id;
  }

  void Drop(const AgentIdentity& via) override {
    loop_.Post([this, via] { EndAll([&](const AgentIdentity& agent) { return agent == via; }, "its agent is gone"); });
  }

  grpc::ServerBidiReactor<v1::RelayBytes, v1::RelayBytes>* Accept(grpc::CallbackServerContext* context) override {
    auto* const call = new RelayCall(context, &loop_);
    loop_.Post([this, call] { Begin(call); });
    return call;
  }

  int64_t refused() const override { return refused_; }

  void Close() override {
    loop_.Post([this] {
      closed_ = true;
      EndAll([](const AgentIdentity&) { return true; }, "the driver is ending");
      for (const auto& [call, relay] : relays_)
        call->End(Refusal(grpc::StatusCode::UNAVAILABLE, "the driver is ending"));
    });
  }

  void Stop() override {
    if (!thread_.joinable()) return;
    loop_.Stop();
    thread_.join();
  }

 private:
  struct Awaited {
    AgentIdentity via;
    std::string target;
    RelayDone done;
    EventLoop::TimerId timer = 0;
  };
  struct Relay {
    std::unique_ptr<RelayCall> call;
    AgentIdentity via;                // once it is known
    std::unique_ptr<RelayPump> pump;  // while it is open
  };

  // Ends the wait for a relay.
  void Answer(uint64_t id, absl::StatusOr<UniqueFd> result) {
    const auto it = awaited_.find(id);
    if (it == awaited_.end()) return;
    const Awaited awaited = std::move(it->second);
    awaited_.erase(it);
    loop_.Cancel(awaited.timer);
    if (result.ok()) return awaited.done(std::move(result));
    awaited.done(absl::Status(result.status().code(), absl::StrCat("to ", awaited.target, " by way of host ",
                                                                   awaited.via.host, ": ", result.status().message())));
  }

  template <typename Which>
  void EndAll(Which which, const std::string& why) {
    std::vector<uint64_t> ids;
    for (const auto& [id, awaited] : awaited_) {
      if (which(awaited.via)) ids.push_back(id);
    }
    for (const uint64_t id : ids) Answer(id, absl::UnavailableError(why));
    for (auto& [call, relay] : relays_) {
      if (relay.pump != nullptr && which(relay.via)) Break(&relay, why);
    }
  }

  void Begin(RelayCall* call) {
    Relay& relay = relays_[call];
    relay.call.reset(call);
    RelayCall::Events events;
    events.read = [this, &relay](v1::RelayBytes bytes) { OnBytes(&relay, std::move(bytes)); };
    events.written = [&relay] {
      if (relay.pump != nullptr) relay.pump->Written();
    };
    events.broken = [this, &relay] { Break(&relay, "the other end is gone"); };
    events.done = [this, call] { relays_.erase(call); };
    call->Begin(std::move(events));
    if (closed_) return call->End(Refusal(grpc::StatusCode::UNAVAILABLE, "the driver is ending"));
    call->Read();
  }

  void OnBytes(Relay* relay, v1::RelayBytes bytes) {
    if (relay->via.host.empty()) return Claim(relay, bytes);
    if (relay->pump == nullptr) return;
    if (bytes.relay() != 0 || !bytes.error().empty() || bytes.data().size() > RelayPump::kLongestPiece) {
      relay->pump.reset();
      return relay->call->End(
          Refusal(grpc::StatusCode::INVALID_ARGUMENT, "not bytes as they follow the first message"));
    }
    relay->pump->Received(std::move(*bytes.mutable_data()), bytes.end());
  }

  // The first message of a call.
  void Claim(Relay* relay, const v1::RelayBytes& bytes) {
    if (bytes.relay() == 0 || !bytes.data().empty() || bytes.end()) {
      return Refuse(relay, Refusal(grpc::StatusCode::INVALID_ARGUMENT, "the first message names a relay, and no more"));
    }
    const auto it = awaited_.find(bytes.relay());
    if (it == awaited_.end()) {
      return Refuse(relay, Refusal(grpc::StatusCode::NOT_FOUND, "this driver does not wait for this relay"));
    }
    const absl::Status proof = CheckPeerCertificate(relay->call->context(), job_, it->second.via);
    if (!proof.ok()) {
      return Refuse(relay, Refusal(grpc::StatusCode::PERMISSION_DENIED, std::string(proof.message())));
    }
    relay->via = it->second.via;
    if (!bytes.error().empty()) {
      Answer(bytes.relay(), absl::UnavailableError(bytes.error().substr(0, kLongestWords)));
      return relay->call->End(grpc::Status::OK);
    }
    Open(relay, bytes.relay());
  }

  void Refuse(Relay* relay, const grpc::Status& why) {
    ++refused_;
    relay->call->End(why);
  }

  void Open(Relay* relay, uint64_t id) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
      Answer(id, ErrnoStatus(errno, "socketpair"));
      return relay->call->End(Refusal(grpc::StatusCode::RESOURCE_EXHAUSTED, "the driver has no socket left"));
    }
    UniqueFd ours(ends[0]), theirs(ends[1]);
    RelayPump::Call call;
    call.write = [relay](std::string bytes, bool end) { relay->call->Write(std::move(bytes), end); };
    call.read = [relay] { relay->call->Read(); };
    call.over = [this, relay](bool whole) {
      if (!whole) return Break(relay, "the driver has closed it");
      relay->pump.reset();
      relay->call->End(grpc::Status::OK);
    };
    relay->pump = std::make_unique<RelayPump>(&loop_, std::move(ours), std::move(call));
    Answer(id, std::move(theirs));
    relay->pump->Begin();
  }

  void Break(Relay* relay, const std::string& why) {
    relay->pump.reset();
    relay->call->End(Refusal(grpc::StatusCode::UNAVAILABLE, why));
  }

  const std::string job_;
  std::atomic<int64_t> refused_{0};
  EventLoop loop_;

  // The loop's.
  bool closed_ = false;
  std::map<uint64_t, Awaited> awaited_;
  std::map<RelayCall*, Relay> relays_;  // a call is forgotten when gRPC has no more use for it

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace

std::unique_ptr<Relays> Relays::Start(std::string job) { return std::make_unique<RelaysImpl>(std::move(job)); }

}  // namespace farandole
