#pragma once

#include <cstdint>

#include "tools/base/strong_id.h"

namespace farandole {

// One agreed membership of a job; only grows. Zero is none. Every message and every chunk of data names it.
using Generation = StrongId<struct GenerationTag, uint64_t>;

// Random id of one start of a worker or an agent: a restarted worker is another one. Never zero.
using Incarnation = StrongId<struct IncarnationTag, uint64_t>;

}  // namespace farandole
