#include "proto/rpc/tls_dialer.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "grpcpp/generic/generic_stub.h"
#include "proto/rpc/grpc_log.h"
#include "proto/rpc/tls_names.h"
#include "proto/rpc/unix_server.h"
#include "tools/base/clock.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

constexpr int kMaxMessageBytes = 16 << 20;  // a start with a full environment
constexpr int kMaxMetadataBytes = 16 << 10;

constexpr absl::Duration kNextAfter = absl::Milliseconds(300);
// How long gRPC waits for a change at a time: what a lost race costs at its end.
constexpr absl::Duration kSlice = absl::Milliseconds(50);
// For the answer to the first call, which a server of ours gives at once.
constexpr absl::Duration kProofTimeout = absl::Seconds(3);
constexpr absl::Duration kAskTimeout = absl::Milliseconds(500);
constexpr int kFirstRetryMs = 100;
constexpr int kLastRetryMs = 1000;
constexpr int kConnectTimeoutMs = 4000;

std::chrono::system_clock::time_point After(absl::Duration span) {
  return std::chrono::system_clock::now() +
         std::chrono::duration_cast<std::chrono::system_clock::duration>(absl::ToChronoNanoseconds(span));
}

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address, const DialOptions& options) {
  grpc::SslCredentialsOptions tls;
  tls.pem_root_certs = options.identity.ca_pem;
  tls.pem_cert_chain = options.identity.certificate_pem;
  tls.pem_private_key = options.identity.private_key_pem;
  grpc::ChannelArguments arguments;
  arguments.SetSslTargetNameOverride(options.server_name);
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstRetryMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kLastRetryMs);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectTimeoutMs);
  if (options.lost_after != absl::InfiniteDuration()) {
    // gRPC's way to set TCP_USER_TIMEOUT; its pings are put off for ever.
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, std::numeric_limits<int>::max() - 1);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, static_cast<int>(absl::ToInt64Milliseconds(options.lost_after)));
  }
  return grpc::CreateCustomChannel(absl::StrCat(absl::StartsWith(address, "[") ? "ipv6:" : "ipv4:", address),
                                   grpc::SslCredentials(tls), arguments);
}

// gRPC's message without what it wraps around the reason.
std::string Reason(const std::string& message) {
  absl::string_view reason = message;
  for (const absl::string_view wrapping : {"last error: ", "UNKNOWN: ", "UNAVAILABLE: "}) {
    if (const size_t at = reason.find(wrapping); at != absl::string_view::npos) {
      reason.remove_prefix(at + wrapping.size());
    }
  }
  return std::string(reason);
}

// The first call over a channel, which no server has: its status says what became of it.
grpc::Status Ask(const std::shared_ptr<grpc::Channel>& channel, absl::Duration patience) {
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  context.set_deadline(After(patience));
  const auto call = stub.PrepareUnaryCall(&context, kProofMethod, grpc::ByteBuffer(), &queue);
  grpc::ByteBuffer reply;
  grpc::Status status;
  call->StartCall();
  call->Finish(&reply, &status, nullptr);
  void* tag;
  bool ok;
  queue.Next(&tag, &ok);
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
  return status;
}

bool HasProvedItself(const std::shared_ptr<grpc::Channel>& channel, Instant deadline) {
  const absl::Duration patience = std::min(deadline - Now(), kProofTimeout);
  return Ask(channel, patience).error_code() == grpc::StatusCode::UNIMPLEMENTED;
}

// Why a channel does not connect: gRPC tells a call, and nobody else.
std::string WhyNot(const std::shared_ptr<grpc::Channel>& channel) {
  if (channel->GetState(false) != GRPC_CHANNEL_TRANSIENT_FAILURE) return "no answer";
  const grpc::Status status = Ask(channel, kAskTimeout);
  return status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED ? "no answer" : Reason(status.error_message());
}

class Race {
 public:
  Race(const std::vector<std::string>& addresses, const DialOptions& options)
      : addresses_(addresses), options_(options) {}

  ~Race() {
    queue_.Shutdown();
    void* tag;
    bool ok;
    while (queue_.Next(&tag, &ok)) {
    }
  }

  absl::StatusOr<Dialled> Run(Instant deadline) {
    Instant next = Now();
    while (Now() < deadline) {
      if (channels_.size() < addresses_.size() && (Now() >= next || newest_has_failed_)) {
        next = Now() + kNextAfter;
        newest_has_failed_ = false;
        if (Start()) return Dialled{channels_.back(), addresses_[channels_.size() - 1]};
        if (channels_.back() == nullptr) next = Now();
      }
      const absl::optional<size_t> connected = Wait(std::min(deadline, Now() + kSlice));
      if (connected.has_value()) {
        if (HasProvedItself(channels_[*connected], deadline)) {
          return Dialled{channels_[*connected], addresses_[*connected]};
        }
        Watch(*connected);  // closed before it came so far: once more
      }
      if (waiting_ == 0 && channels_.size() == addresses_.size()) break;  // only unix sockets, and none is there
    }
    return absl::UnavailableError(absl::StrJoin(Reasons(), "; "));
  }

 private:
  // Tries one more address; true: it is connected.
  bool Start() {
    const std::string& address = addresses_[channels_.size()];
    if (absl::StartsWith(address, "unix-abstract:")) {
      absl::StatusOr<std::shared_ptr<grpc::Channel>> channel = ConnectUnix(address);
      unix_reasons_.push_back(std::string(channel.status().message()));
      channels_.push_back(channel.ok() ? *std::move(channel) : nullptr);
      return channels_.back() != nullptr;
    }
    channels_.push_back(MakeChannel(address, options_));
    unix_reasons_.emplace_back();
    Watch(channels_.size() - 1);
    ++waiting_;
    return false;
  }

  void Watch(size_t which) {
    const grpc_connectivity_state state = channels_[which]->GetState(/*try_to_connect=*/true);
    channels_[which]->NotifyOnStateChange(state, After(kSlice), &queue_, reinterpret_cast<void*>(which));
  }

  // The channel that has connected by `deadline`, if one has.
  absl::optional<size_t> Wait(Instant deadline) {
    while (waiting_ > 0) {
      void* tag;
      bool changed;
      if (queue_.AsyncNext(&tag, &changed, After(deadline - Now())) != grpc::CompletionQueue::GOT_EVENT) break;
      const auto which = reinterpret_cast<size_t>(tag);
      const grpc_connectivity_state state = channels_[which]->GetState(false);
      if (state == GRPC_CHANNEL_READY) return which;
      newest_has_failed_ |= state == GRPC_CHANNEL_TRANSIENT_FAILURE && which + 1 == channels_.size();
      Watch(which);
      if (newest_has_failed_ || Now() >= deadline) break;
    }
    return absl::nullopt;
  }

  std::vector<std::string> Reasons() const {
    std::vector<std::string> reasons;
    for (size_t i = 0; i < addresses_.size(); ++i) {
      const bool tried = i < channels_.size();
      reasons.push_back(!tried                    ? absl::StrCat(addresses_[i], ": not tried any more")
                        : channels_[i] == nullptr ? unix_reasons_[i]
                                                  : absl::StrCat(addresses_[i], ": ", WhyNot(channels_[i])));
    }
    return reasons;
  }

  const std::vector<std::string>& addresses_;
  const DialOptions& options_;
  grpc::CompletionQueue queue_;
  std::vector<std::shared_ptr<grpc::Channel>>
      channels_;  // of the addresses tried so far; null: a unix socket that failed
  std::vector<std::string> unix_reasons_;
  int waiting_ = 0;
  bool newest_has_failed_ = false;
};

absl::Status CheckAddress(const std::string& address) {
  if (absl::StartsWith(address, "unix-abstract:")) return absl::OkStatus();
  const size_t colon = address.rfind(':');
  const bool has_port = colon != std::string::npos && colon + 1 < address.size();
  if (has_port && address.find_first_not_of("0123456789", colon + 1) == std::string::npos) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("\"", address, "\" is no driver's address: neither unix-abstract:NAME nor ADDRESS:PORT"));
}

}  // namespace

absl::StatusOr<Dialled> DialFirst(const std::vector<std::string>& addresses, const DialOptions& options,
                                  Instant deadline) {
  for (const std::string& address : addresses) RETURN_IF_ERROR(CheckAddress(address));
  QuietGrpc();
  Race race(addresses, options);
  return race.Run(deadline);
}

}  // namespace farandole
