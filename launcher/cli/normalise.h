#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "launcher/cli/options.h"

namespace farandole {

// A command line cut into its parts: what stands before the program as known options with their values, the rest as it
// is.
struct NormalisedWords {
  struct Given {
    const OptionSpec* option = nullptr;
    std::string value;  // empty for a switch; of an option with two values, both with a blank between
  };
  std::vector<Given> options;
  std::vector<std::string> command;
  bool after_separator = false;  // the command came after "--"

  // The options in one spelling: "--num-proc=4", "--verbose".
  std::vector<std::string> Canonical() const;
};

// Reads words as the original's argparse does:
//   - the first word that is neither an option nor an option's value begins the command, and all after it belongs to
//     it; a "--" before it is dropped (the original keeps it, and then executes it);
//   - "--option value", "--option=value"; any prefix of a long option that can mean only one. What is a prefix in the
//     original stays one: ours are looked at only when none of the original's begins so;
//   - "-np 4", "-np=4", but not "-np4"; "-H host:2", "-Hhost:2", "-H=host:2", "-p22";
//   - a value may begin with a dash after "=", or when it has a blank in it: --mpi-args="-x", --mpi-args "-x PATH".
// -h and -v end the reading: what follows does not matter.
//
// Errors (InvalidArgument, a sentence for a person): an unknown option, with the nearest known; a prefix with several
// meanings; a missing value, or one for a switch.
absl::StatusOr<NormalisedWords> Normalise(absl::Span<const std::string> words);

}  // namespace farandole
