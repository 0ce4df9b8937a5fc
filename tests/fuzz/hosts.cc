// The grammar of hosts, as -H (first byte even) and as a hostfile (odd). What is read can be written and read again;
// what is refused is refused with the place.
#include "launcher/cli/hosts.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tests/fuzz/input.h"
#include "tools/base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace farandole;  // NOLINT
  fuzz::Input input(data, size);
  const bool list = input.Byte() % 2 == 0;
  const std::string text = input.Rest();
  LooksLikeHosts(text);
  const auto hosts = list ? ParseHostList("-H", text) : ParseHostfile("hosts", text);
  if (!hosts.ok()) {
    CHECK(absl::IsInvalidArgument(hosts.status())) << hosts.status();
    CHECK(absl::StartsWith(hosts.status().message(), list ? "-H" : "hosts")) << hosts.status();
    return 0;
  }
  CHECK(!hosts->empty()) << "no host is an error";
  for (const HostSpec& host : *hosts) {
    CHECK(!host.name.empty() && host.slots >= 1 && host.slots <= kMaxSlots) << DescribeHosts({host});
    CHECK(host.ssh_port >= 0 && host.ssh_port <= 65535) << DescribeHosts({host});
  }
  const auto again = ParseHostList("-H", DescribeHosts(*hosts));
  CHECK_OK(again.status());
  CHECK(*again == *hosts) << DescribeHosts(*hosts);
  return 0;
}
