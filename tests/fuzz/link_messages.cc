// What is read from data links and from other members' endpoints. A decoder takes any bytes; what it takes for a
// message is encoded to the same bytes again.
#include <string>
#include <vector>

#include "collectives/transport/tcp/candidates.h"
#include "collectives/transport/tcp/socket.h"
#include "collectives/transport/tcp/wire.h"
#include "tests/fuzz/input.h"
#include "tools/base/check.h"

namespace farandole::fuzz {
namespace {

void TryWire(const std::string& bytes) {
  for (const Greeting greeting : {Greeting::kHello, Greeting::kChallenge}) {
    const auto nonce = DecodeGreeting(greeting, bytes);
    CHECK(!nonce.has_value() || EncodeGreeting(greeting, *nonce) == bytes) << "greeting";
  }
  const auto claim = DecodeClaim(bytes);
  CHECK(!claim.has_value() || EncodeClaim(*claim) == bytes) << "claim";
  const auto data = DecodeDataHeader(bytes);
  CHECK(!data.has_value() || EncodeDataHeader(*data) == bytes) << "data header";
  const auto control = DecodeControlHeader(bytes);
  CHECK(!control.has_value() || EncodeControlHeader(*control) == bytes) << "control header";
}

void TryEndpoints(const std::string& endpoints, bool same_host) {
  const std::vector<OwnAddress> own = {{std::string("\x7f\0\0\1", 4), 8, ""},
                                       {std::string("\x0a\1\2\3", 4), -1, ""},
                                       {std::string("\xfe\x80\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 16), 64, "eth0"}};
  std::vector<Candidate> candidates;
  for (const std::string& endpoint : SplitEndpoints(endpoints)) {
    const auto address = ParseEndpoint(WithoutZone(endpoint));
    candidates.push_back({endpoint, address.ok() ? AddressBits(*address) : ""});
    if (!address.ok()) continue;
    const auto again = ParseEndpoint(FormatEndpoint(*address));
    CHECK(again.ok() && AddressBits(*again) == candidates.back().bits) << endpoint;
  }
  CHECK(candidates.size() <= kEndpointsMax) << candidates.size();
  // One link-local address of ours: no endpoint becomes two.
  CHECK(OrderCandidates(candidates, own, same_host).size() == candidates.size()) << endpoints;
}

}  // namespace
}  // namespace farandole::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  farandole::fuzz::Input input(data, size);
  const uint8_t kind = input.Byte();
  if (kind % 2 == 0) {
    farandole::fuzz::TryWire(input.Rest());
  } else {
    farandole::fuzz::TryEndpoints(input.Rest(), (kind & 2) != 0);
  }
  return 0;
}
