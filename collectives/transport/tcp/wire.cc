#include "collectives/transport/tcp/wire.h"

#include <limits>
#include <type_traits>

#include "absl/strings/match.h"
#include "collectives/transport/control_channel.h"

namespace farandole {
namespace {

// The last character is the version of the protocol.
constexpr absl::string_view kHelloMagic("FDLhelo1", 8);
constexpr absl::string_view kChallengeMagic("FDLchal1", 8);
constexpr uint32_t kDataMagic = 0x444c4446;     // "FDLD"
constexpr uint32_t kControlMagic = 0x434c4446;  // "FDLC"

class Writer {
 public:
  template <typename T>
  Writer& Put(T value) {
    static_assert(std::is_unsigned_v<T>);
    for (size_t i = 0; i < sizeof(T); ++i) bytes_.push_back(static_cast<char>(value >> (8 * i)));
    return *this;
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// The caller has checked the length.
class Reader {
 public:
  explicit Reader(absl::string_view bytes) : left_(bytes) {}
  template <typename T>
  T Get() {
    T value = 0;
    for (size_t i = 0; i < sizeof(T); ++i)
      value |= static_cast<T>(static_cast<T>(static_cast<uint8_t>(left_[i])) << (8 * i));
    left_.remove_prefix(sizeof(T));
    return value;
  }

 private:
  absl::string_view left_;
};

absl::string_view MagicOf(Greeting greeting) { return greeting == Greeting::kHello ? kHelloMagic : kChallengeMagic; }

constexpr uint32_t kRankMax = std::numeric_limits<Rank>::max();

}  // namespace

std::string EncodeGreeting(Greeting greeting, absl::string_view nonce) {
  return std::string(MagicOf(greeting)) + std::string(nonce);
}

absl::optional<std::string> DecodeGreeting(Greeting greeting, absl::string_view bytes) {
  const absl::string_view magic = MagicOf(greeting);
  if (bytes.size() != kGreetingBytes || !absl::StartsWith(bytes, magic)) return absl::nullopt;
  return std::string(bytes.substr(magic.size()));
}

std::string EncodeClaim(const LinkClaim& claim) {
  return Writer()
      .Put(claim.generation.value())
      .Put(claim.from_incarnation.value())
      .Put(claim.to_incarnation.value())
      .Put(claim.group)
      .Put(static_cast<uint32_t>(claim.from))
      .Put(static_cast<uint32_t>(claim.to))
      .Put(static_cast<uint16_t>(claim.purpose))
      .Put(static_cast<uint16_t>(claim.stream))
      .Take();
}

absl::optional<LinkClaim> DecodeClaim(absl::string_view bytes) {
  if (bytes.size() != kClaimBytes) return absl::nullopt;
  Reader reader(bytes);
  LinkClaim claim;
  claim.generation = Generation(reader.Get<uint64_t>());
  claim.from_incarnation = Incarnation(reader.Get<uint64_t>());
  claim.to_incarnation = Incarnation(reader.Get<uint64_t>());
  claim.group = reader.Get<uint32_t>();
  const uint32_t from = reader.Get<uint32_t>();
  const uint32_t to = reader.Get<uint32_t>();
  const uint16_t purpose = reader.Get<uint16_t>();
  const uint16_t stream = reader.Get<uint16_t>();
  if (from > kRankMax || to > kRankMax || from == to) return absl::nullopt;
  const bool data = purpose == static_cast<uint16_t>(LinkPurpose::kData);
  if (!data && purpose != static_cast<uint16_t>(LinkPurpose::kControl)) return absl::nullopt;
  if (stream >= (data ? kStreamsMax : 1)) return absl::nullopt;
  claim.from = static_cast<Rank>(from);
  claim.to = static_cast<Rank>(to);
  claim.purpose = static_cast<LinkPurpose>(purpose);
  claim.stream = stream;
  return claim;
}

std::string EncodeDataHeader(const DataHeader& header) {
  return Writer()
      .Put(kDataMagic)
      .Put(header.group)
      .Put(header.generation.value())
      .Put(header.operation)
      .Put(header.length)
      .Take();
}

absl::optional<DataHeader> DecodeDataHeader(absl::string_view bytes) {
  if (bytes.size() != kDataHeaderBytes) return absl::nullopt;
  Reader reader(bytes);
  if (reader.Get<uint32_t>() != kDataMagic) return absl::nullopt;
  DataHeader header;
  header.group = reader.Get<uint32_t>();
  header.generation = Generation(reader.Get<uint64_t>());
  header.operation = reader.Get<uint64_t>();
  header.length = reader.Get<uint64_t>();
  return header;
}

std::string EncodeControlHeader(const ControlHeader& header) {
  return Writer().Put(kControlMagic).Put(header.length).Take();
}

absl::optional<ControlHeader> DecodeControlHeader(absl::string_view bytes) {
  if (bytes.size() != kControlHeaderBytes) return absl::nullopt;
  Reader reader(bytes);
  if (reader.Get<uint32_t>() != kControlMagic) return absl::nullopt;
  const ControlHeader header{reader.Get<uint32_t>()};
  if (header.length > ControlChannel::kMessageBytesMax) return absl::nullopt;
  return header;
}

}  // namespace farandole
