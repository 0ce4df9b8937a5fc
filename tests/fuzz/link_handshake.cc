// The handshake of a data link, over a socket, with a man in the middle: what one true side says reaches the other with
// some bytes changed, cut into pieces anywhere, and perhaps not to its end.
//
// Input: a byte of flags (1: the connecting side is tried, 2: the connection ends early), the claim (one that makes
// sense if these bytes do not), how many bytes pass before the end, the lengths of eight pieces, and then what each
// byte that is said is XORed with.
//
// What must hold: what was changed is never believed, and what was neither changed nor cut always is.
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "collectives/transport/tcp/handshake.h"
#include "collectives/transport/tcp/handshake_io.h"
#include "collectives/transport/tcp/wire.h"
#include "tests/fuzz/input.h"
#include "tools/base/check.h"
#include "tools/base/unique_fd.h"

namespace farandole::fuzz {
namespace {

constexpr char kKey[] = "the key of the job";

std::pair<UniqueFd, UniqueFd> SocketPair() {
  int ends[2];
  CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0) << "socketpair";
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

LinkClaim ClaimOf(const std::string& bytes) {
  if (const auto claim = DecodeClaim(bytes)) return *claim;
  LinkClaim claim;
  claim.generation = Generation(1);
  claim.to = 1;
  claim.from_incarnation = Incarnation(2);
  claim.to_incarnation = Incarnation(3);
  return claim;
}

// The other true side, to whom everything arrives as it was said, and the wire from it that is not to be trusted.
class Middle {
 public:
  Middle(Handshake other, bool ends, Input input) : other_(std::move(other)) {
    const uint8_t passes = input.Byte();
    if (ends) passes_ = passes;
    for (size_t& piece : pieces_) piece = 1 + input.Byte() % 80;
    changes_ = input.Rest();
  }

  bool changed() const { return changed_; }
  bool ended() const { return gone_ || passed_ >= passes_; }

  // What the other side says next, changed.
  std::string Speak() {
    std::string words = other_.TakeOutput();
    for (char& byte : words) {
      if (at_ < changes_.size()) {
        byte = static_cast<char>(byte ^ changes_[at_]);
        changed_ = changed_ || changes_[at_] != 0;
      }
      ++at_;
    }
    return words;
  }
  // Of `words`, the next piece that passes.
  std::string Pass(std::string& words) {
    const size_t length = std::min({words.size(), pieces_[next_++ % pieces_.size()], passes_ - passed_});
    passed_ += length;
    const std::string piece = words.substr(0, length);
    words.erase(0, length);
    return piece;
  }
  void Hear(const std::string& words) {
    heard_ += words;
    while (!gone_ && other_.wanted() > 0 && heard_.size() >= other_.wanted()) {
      const std::string message = heard_.substr(0, other_.wanted());
      heard_.erase(0, message.size());
      gone_ = !other_.Receive(message).ok();
      CHECK(!gone_ || changed_) << "the true answer to true words was refused";
    }
  }

 private:
  Handshake other_;
  std::array<size_t, 8> pieces_{};
  size_t next_ = 0;
  std::string changes_;
  size_t at_ = 0;
  bool changed_ = false;
  size_t passes_ = SIZE_MAX;  // bytes until the connection ends
  size_t passed_ = 0;
  bool gone_ = false;  // has noticed a change, and left
  std::string heard_;
};

std::string ReadAll(int fd) {
  char buffer[256];
  const ssize_t length = ::recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
  return std::string(buffer, length > 0 ? static_cast<size_t>(length) : 0);
}

// Whether the handshake of `tried` succeeds.
bool Succeeds(Handshake tried, Middle& middle) {
  auto [near, far] = SocketPair();
  HandshakeIo io(std::move(near), std::move(tried));
  std::string words;
  while (true) {
    const absl::StatusOr<short> events = io.Advance();
    if (!events.ok()) {
      CHECK(!events.status().message().empty()) << "an error without words";
      return false;
    }
    if (*events == 0) return true;
    CHECK(*events == POLLIN) << "a few bytes always fit";
    middle.Hear(ReadAll(far.get()));
    words += middle.Speak();
    const std::string piece = middle.Pass(words);
    const ssize_t sent = ::send(far.get(), piece.data(), piece.size(), MSG_NOSIGNAL);
    CHECK(sent == static_cast<ssize_t>(piece.size())) << "send";
    CHECK(middle.ended() || !piece.empty()) << "both wait for each other";
    if (middle.ended()) far.reset();
  }
}

}  // namespace
}  // namespace farandole::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace farandole;        // NOLINT
  using namespace farandole::fuzz;  // NOLINT
  Input input(data, size);
  const uint8_t flags = input.Byte();
  const LinkClaim claim = fuzz::ClaimOf(input.Bytes(kClaimBytes));
  Handshake tried = Handshake::Client(kKey, claim);
  Handshake other = Handshake::Server(kKey, claim.to_incarnation);
  if ((flags & 1) == 0) std::swap(tried, other);
  Middle middle(std::move(other), (flags & 2) != 0, input);
  const bool succeeded = Succeeds(std::move(tried), middle);
  CHECK(!succeeded || !middle.changed()) << "a changed handshake was believed";
  CHECK(succeeded || middle.changed() || middle.ended()) << "a true handshake was refused";
  return 0;
}
