#include "launcher/plan/network_choice.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/optional.h"
#include "launcher/cli/ip_address.h"
#include "launcher/cli/quote.h"

namespace farandole {
namespace {

constexpr size_t kMostShown = 32;  // offers in a message

struct Candidate {
  OfferedAddress offer;
  IpAddress address;
};
using Candidates = std::vector<const Candidate*>;

std::vector<Candidate> Usable(absl::Span<const OfferedAddress> offered) {
  std::vector<Candidate> usable;
  for (const OfferedAddress& offer : offered) {
    const absl::optional<IpAddress> address = ParseIpAddress(offer.address);
    if (address && !address->IsUnspecified() && !address->IsMulticast()) usable.push_back({offer, *address});
  }
  return usable;
}

Candidates WithoutWish(const std::vector<Candidate>& candidates) {
  Candidates chosen;
  for (const Candidate& candidate : candidates) {
    if (!candidate.address.IsLoopback() && !candidate.address.IsLinkLocal()) chosen.push_back(&candidate);
  }
  std::stable_partition(chosen.begin(), chosen.end(),
                        [](const Candidate* candidate) { return !candidate->address.IsSiteLocal(); });
  return chosen;
}

Candidates OfInterface(const std::vector<Candidate>& candidates, const std::string& name) {
  Candidates near, far;
  for (const Candidate& candidate : candidates) {
    if (candidate.offer.interface == name) (candidate.address.IsLinkLocal() ? near : far).push_back(&candidate);
  }
  return far.empty() ? near : far;
}

Candidates Fitting(const std::vector<Candidate>& candidates, const NetworkChoice::Rule& rule) {
  if (!rule.range) return OfInterface(candidates, rule.wanted);
  Candidates fitting;
  for (const Candidate& candidate : candidates) {
    if (rule.range->Contains(candidate.address)) fitting.push_back(&candidate);
  }
  return fitting;
}

std::vector<const NetworkChoice::Rule*> RulesOf(const NetworkChoice& choice, const std::string& host) {
  std::vector<const NetworkChoice::Rule*> own, general;
  for (const NetworkChoice::Rule& rule : choice.rules) {
    if (rule.host == host) own.push_back(&rule);
    if (rule.host.empty()) general.push_back(&rule);
  }
  return own.empty() ? general : own;
}

std::string Describe(absl::Span<const OfferedAddress> offered) {
  if (offered.empty()) return "no address at all";
  const std::string shown =
      absl::StrJoin(offered.subspan(0, kMostShown), ", ", [](std::string* out, const OfferedAddress& offer) {
        const std::string text = Quote(absl::StrCat(offer.interface, " ", offer.address, "/", offer.prefix_length));
        absl::StrAppend(out, text.substr(1, text.size() - 2));
      });
  return absl::StrCat(shown, offered.size() > kMostShown ? ", ..." : "");
}

absl::Status NothingFits(const std::string& host, const std::string& wanted, absl::Span<const OfferedAddress> offered) {
  return absl::FailedPreconditionError(absl::StrCat(
      "host ", host, ": --network-interface asks for ", wanted, ", and it has ", Describe(offered),
      "; for hosts that differ write ", host.find(':') == std::string::npos ? host : absl::StrCat("[", host, "]"),
      "=INTERFACE or a range of addresses"));
}

}  // namespace

absl::StatusOr<std::vector<OfferedAddress>> ChooseAddresses(const NetworkChoice& choice, const std::string& host,
                                                            absl::Span<const OfferedAddress> offered) {
  const std::vector<Candidate> candidates = Usable(offered);
  const std::vector<const NetworkChoice::Rule*> rules = RulesOf(choice, host);
  Candidates chosen;
  if (rules.empty()) {
    chosen = WithoutWish(candidates);
    if (chosen.empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat("host ", host, ": no address that others could reach; it has ", Describe(offered)));
    }
  }
  std::vector<std::string> wanted;
  for (const NetworkChoice::Rule* rule : rules) {
    wanted.push_back(rule->wanted);
    const Candidates fitting = Fitting(candidates, *rule);
    if (fitting.empty() && !rule->host.empty()) return NothingFits(host, rule->wanted, offered);
    for (const Candidate* candidate : fitting) {
      if (std::find(chosen.begin(), chosen.end(), candidate) == chosen.end()) chosen.push_back(candidate);
    }
  }
  if (chosen.empty()) return NothingFits(host, absl::StrJoin(wanted, " or "), offered);
  std::vector<OfferedAddress> addresses;
  for (const Candidate* candidate : chosen) addresses.push_back(candidate->offer);
  return addresses;
}

std::vector<std::string> InterfacesOf(absl::Span<const OfferedAddress> addresses) {
  std::vector<std::string> names;
  for (const OfferedAddress& address : addresses) {
    if (std::find(names.begin(), names.end(), address.interface) == names.end()) names.push_back(address.interface);
  }
  return names;
}

}  // namespace farandole
