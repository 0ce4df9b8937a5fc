#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "driver/core/ids.h"
#include "launcher/cli/networks.h"

namespace farandole {

// Which of the addresses that `host` offers its workers listen on, in the order in which others should try them.
//
// Without a wish: all but loopback and link-local ones, those of global scope first. Whether one can be reached is
// found out by trying; that the same address exists on every host (a bridge of containers) does no harm.
//
// With rules: those of the host if there are any, else those without a host, in their order; a host that neither
// concerns has no wish. A rule that names an interface takes its addresses, link-local ones only when it has no others;
// a range takes whatever is in it. Of rules for every host one has to fit, as hosts differ; of rules for this host each
// has to, as they were written for it.
//
// What is no address to connect to is passed over: offers come from elsewhere.
//
// Errors (FailedPrecondition): nothing fits, or not each; with the host, what was asked for, and what it has.
absl::StatusOr<std::vector<OfferedAddress>> ChooseAddresses(const NetworkChoice& choice, const std::string& host,
                                                            absl::Span<const OfferedAddress> offered);

// The interfaces of `addresses`, each once, in their order.
std::vector<std::string> InterfacesOf(absl::Span<const OfferedAddress> addresses);

}  // namespace farandole
