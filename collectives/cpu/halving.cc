#include "collectives/cpu/halving.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "collectives/cpu/adasum_kernels.h"
#include "collectives/cpu/reduce.h"
#include "collectives/schedule/halving_schedule.h"
#include "collectives/schedule/segment.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

// One call: the schedule, with what is done to two halves left to `merge`.
class Halving {
 public:
  // Combines this rank's elements of `segment` with the peer's, which have come, in place.
  using Merge = std::function<absl::Status(const HalvingLevel& level, Segment segment, const std::byte* peer)>;

  Halving(const HalvingTask& task, int64_t count, const Exchange& exchange)
      : task_(task), count_(count), width_(SizeOf(task.dtype)), exchange_(exchange) {}

  absl::Status Run(const Merge& merge) {
    const Rank partner = FoldPartner(task_.size, task_.rank);
    const bool takes_part = task_.rank < HalvingRanks(task_.size);
    const Segment all{0, count_};
    if (!takes_part) {
      RETURN_IF_ERROR(exchange_(partner, At(all), task_.rank, {}));
      return exchange_(task_.rank, {}, partner, At(all));
    }
    if (partner >= 0) {
      RETURN_IF_ERROR(exchange_(task_.rank, {}, partner, Scratch(all)));
      // A level of its own, whose distance is larger than any rank: nobody else shares the two vectors.
      RETURN_IF_ERROR(merge({0, partner, true, all, {}}, all, task_.scratch->data()));
    }
    const std::vector<HalvingLevel> levels = HalvingLevels(task_.size, task_.rank, count_);
    for (const HalvingLevel& level : levels) {
      RETURN_IF_ERROR(exchange_(level.peer, At(level.give), level.peer, Scratch(level.keep)));
      RETURN_IF_ERROR(merge(level, level.keep, task_.scratch->data()));
    }
    for (auto level = levels.rbegin(); level != levels.rend(); ++level) {
      RETURN_IF_ERROR(exchange_(level->peer, At(level->keep), level->peer, At(level->give)));
    }
    return partner >= 0 ? exchange_(partner, At(all), task_.rank, {}) : absl::OkStatus();
  }

  absl::Span<std::byte> At(Segment segment) const {
    return {task_.data + segment.begin * width_, static_cast<size_t>(segment.size() * width_)};
  }

 private:
  absl::Span<std::byte> Scratch(Segment segment) {
    const size_t bytes = static_cast<size_t>(segment.size() * width_);
    if (task_.scratch->size() < bytes) task_.scratch->resize(bytes);
    return absl::MakeSpan(*task_.scratch).subspan(0, bytes);
  }

  const HalvingTask& task_;
  const int64_t count_;
  const int64_t width_;
  const Exchange& exchange_;
};

// The part of each piece that lies in `segment`.
std::vector<Segment> PartsIn(Segment segment, absl::Span<const int64_t> pieces) {
  std::vector<Segment> parts;
  int64_t begin = 0;
  for (const int64_t piece : pieces) {
    const int64_t from = std::clamp(begin, segment.begin, segment.end);
    parts.push_back({from, std::clamp(begin + piece, segment.begin, segment.end)});
    begin += piece;
  }
  return parts;
}

// Adds up the dots over the ranks that share the two vectors: 2 * distance of them, next to each other. Each step adds
// the same two numbers on both sides, so all get the same bits.
absl::Status AddUp(const HalvingTask& task, const HalvingLevel& level, std::vector<AdasumDots>& dots,
                   const Exchange& exchange) {
  std::vector<AdasumDots> others(dots.size());
  const auto bytes = [](std::vector<AdasumDots>& list) {
    return absl::MakeSpan(reinterpret_cast<std::byte*>(list.data()), list.size() * sizeof(AdasumDots));
  };
  for (int distance = 1; distance <= level.distance; distance *= 2) {
    const Rank peer = task.rank ^ distance;
    RETURN_IF_ERROR(exchange(peer, bytes(dots), peer, bytes(others)));
    for (size_t i = 0; i < dots.size(); ++i) {
      dots[i].ab += others[i].ab, dots[i].aa += others[i].aa, dots[i].bb += others[i].bb;
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status HalvingAllReduce(const HalvingTask& task, int64_t count, ReduceOp op, const Exchange& exchange) {
  Halving halving(task, count, exchange);
  return halving.Run([&](const HalvingLevel& level, Segment segment, const std::byte* peer) {
    std::byte* const own = halving.At(segment).data();
    Reduce(task.dtype, op, level.lower ? own : peer, level.lower ? peer : own, own, segment.size());
    return absl::OkStatus();
  });
}

absl::Status HalvingAdasum(const HalvingTask& task, absl::Span<const int64_t> pieces, const Exchange& exchange) {
  const int64_t count = std::accumulate(pieces.begin(), pieces.end(), int64_t{0});
  const int64_t width = SizeOf(task.dtype);
  Halving halving(task, count, exchange);
  return halving.Run([&](const HalvingLevel& level, Segment segment, const std::byte* peer) -> absl::Status {
    const std::vector<Segment> parts = PartsIn(segment, pieces);
    std::vector<AdasumDots> dots;
    const auto sides = [&](Segment part) {
      const std::byte* const own = halving.At(part).data();
      const std::byte* const other = peer + (part.begin - segment.begin) * width;
      return level.lower ? std::pair(own, other) : std::pair(other, own);
    };
    for (const Segment part : parts) {
      const auto [a, b] = sides(part);
      dots.push_back(DotsOf(task.dtype, a, b, part.size()));
    }
    RETURN_IF_ERROR(AddUp(task, level, dots, exchange));
    for (size_t i = 0; i < parts.size(); ++i) {
      const auto [a, b] = sides(parts[i]);
      Combine(task.dtype, FactorsOf(dots[i]), a, b, halving.At(parts[i]).data(), parts[i].size());
    }
    return absl::OkStatus();
  });
}

}  // namespace farandole
