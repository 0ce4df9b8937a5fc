#pragma once

// What TCP links carry, byte by byte; numbers are little-endian. The decoders are given exactly the bytes of one piece,
// come from anybody as far as they know, and answer nullopt for what is no such piece. Pure.
//
//   handshake   client: hello              magic, nonce
//               server: challenge          magic, nonce
//               client: claim, its proof   who wants which link; MAC over both nonces and the claim
//               server: proof              MAC over the same with the other label
//   data        header, then a stripe of a message of `length` bytes
//   control     header, then `length` bytes

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "collectives/core/group.h"
#include "tools/base/ids.h"

namespace farandole {

inline constexpr size_t kNonceBytes = 32;
inline constexpr size_t kProofBytes = 32;
inline constexpr size_t kGreetingBytes = 8 + kNonceBytes;
inline constexpr size_t kClaimBytes = 40;
inline constexpr size_t kDataHeaderBytes = 32;
inline constexpr size_t kControlHeaderBytes = 8;
inline constexpr int kStreamsMax = 16;

enum class LinkPurpose : uint8_t {
  kData = 1,     // carries bytes from `from` to `to` only
  kControl = 2,  // both ways
};

// Which link a connection wants to be. The rank `from` connects to the listener of `to`.
struct LinkClaim {
  Generation generation;
  uint32_t group = 0;
  Rank from = 0;
  Rank to = 0;
  LinkPurpose purpose = LinkPurpose::kData;
  int stream = 0;  // of data, below kStreamsMax: long messages are cut over several connections
  Incarnation from_incarnation;
  Incarnation to_incarnation;
  friend bool operator==(const LinkClaim&, const LinkClaim&) = default;
};

// Before each stripe of a message (stripes.h).
struct DataHeader {
  Generation generation;
  uint32_t group = 0;
  uint64_t operation = 0;
  uint64_t length = 0;  // of the whole message
  friend bool operator==(const DataHeader&, const DataHeader&) = default;
};

struct ControlHeader {
  uint32_t length = 0;  // at most ControlChannel::kMessageBytesMax
  friend bool operator==(const ControlHeader&, const ControlHeader&) = default;
};

enum class Greeting { kHello, kChallenge };
std::string EncodeGreeting(Greeting greeting, absl::string_view nonce);
absl::optional<std::string> DecodeGreeting(Greeting greeting, absl::string_view bytes);  // the nonce

std::string EncodeClaim(const LinkClaim& claim);
absl::optional<LinkClaim> DecodeClaim(absl::string_view bytes);

std::string EncodeDataHeader(const DataHeader& header);
absl::optional<DataHeader> DecodeDataHeader(absl::string_view bytes);

std::string EncodeControlHeader(const ControlHeader& header);
absl::optional<ControlHeader> DecodeControlHeader(absl::string_view bytes);

}  // namespace farandole
