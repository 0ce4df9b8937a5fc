#pragma once

#include <cstdint>

#include "launcher/bench/bench_request.h"
#include "launcher/bench/timed_loop.h"

namespace farandole {

// The header of the table that PrintTiming fills; nothing for JSON.
void PrintHeader(const BenchRequest& request);

// One line on stdout for what was measured.
void PrintTiming(const BenchRequest& request, int64_t bytes, const bench::Timing& timing);

}  // namespace farandole
