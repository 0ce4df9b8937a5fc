#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "launcher/cli/settings.h"

namespace farandole {

// Numbers as a person writes them. Errors are InvalidArgument, a sentence with the origin and the value:
//   --grace "soon" is not a number
//   --cache-capacity -1: must be at least 0
//   -p 70000: more than 65535

// A whole number, at least `least` and at most `most`.
absl::StatusOr<int64_t> WholeNumber(const Setting& setting, int64_t least, int64_t most);

// Finite, at least `least` and at most `most`.
absl::StatusOr<double> RealNumber(const Setting& setting, double least, double most);

// A number as Python's float shows it, which is how the original hands it on: the shortest that reads back as the same,
// "20.0", "0.1", "1e-05", "1e+16". `number` is finite.
std::string PythonFloat(double number);

}  // namespace farandole
