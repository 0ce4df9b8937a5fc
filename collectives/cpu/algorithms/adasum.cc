#include "collectives/cpu/algorithms/adasum.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "collectives/cpu/half.h"
#include "collectives/schedule/halving_schedule.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

// Elements as they are stored, and as they are computed with.
struct Float16 {
  using Stored = uint16_t;
  static double Load(Stored bits) { return FloatFromFloat16(bits); }
  static Stored Store(double value) { return Float16FromFloat(static_cast<float>(value)); }
};
struct Bfloat16 {
  using Stored = uint16_t;
  static double Load(Stored bits) { return FloatFromBfloat16(bits); }
  static Stored Store(double value) { return Bfloat16FromFloat(static_cast<float>(value)); }
};
template <typename T>
struct Plain {
  using Stored = T;
  static double Load(T value) { return value; }
  static T Store(double value) { return static_cast<T>(value); }
};

template <typename Type>
double Get(const std::byte* from, int64_t i) {
  typename Type::Stored stored;
  std::memcpy(&stored, from + i * sizeof stored, sizeof stored);
  return Type::Load(stored);
}

// What a pair of vectors is combined by, as far as a part of them goes.
struct Dots {
  double ab = 0;
  double aa = 0;
  double bb = 0;
};

template <typename Type>
Dots DotsOf(const std::byte* a, const std::byte* b, int64_t count) {
  Dots dots;
  for (int64_t i = 0; i < count; ++i) {
    const double x = Get<Type>(a, i);
    const double y = Get<Type>(b, i);
    dots.ab += x * y;
    dots.aa += x * x;
    dots.bb += y * y;
  }
  return dots;
}

// The factor of the side with the squared norm `norm`.
double FactorOf(double ab, double norm) { return norm < std::sqrt(DBL_MIN) ? 1 : 1 - ab / (2 * norm); }

template <typename Type>
void Combine(const Dots& dots, const std::byte* a, const std::byte* b, std::byte* to, int64_t count) {
  const double of_a = FactorOf(dots.ab, dots.aa);
  const double of_b = FactorOf(dots.ab, dots.bb);
  for (int64_t i = 0; i < count; ++i) {
    const typename Type::Stored stored = Type::Store(of_a * Get<Type>(a, i) + of_b * Get<Type>(b, i));
    std::memcpy(to + i * sizeof stored, &stored, sizeof stored);
  }
}

class Adasum {
 public:
  Adasum(const CollectiveCall& call, std::byte* data, absl::Span<const int64_t> pieces, DType dtype)
      : call_(call), data_(data), dtype_(dtype), begins_(pieces.size() + 1, 0) {
    std::partial_sum(pieces.begin(), pieces.end(), begins_.begin() + 1);
  }

  absl::Status Run() {
    const int ranks = HalvingRanks(call_.size);
    const Segment all{0, begins_.back()};
    if (call_.rank >= ranks) {
      RETURN_IF_ERROR(call_.Post(call_.rank - ranks, Of(all)));
      RETURN_IF_ERROR(call_.Receive(call_.rank - ranks, Of(all)));
      return call_.Flush();
    }
    const bool folds = call_.rank + ranks < call_.size;
    if (folds) {
      RETURN_IF_ERROR(Fold(call_.rank + ranks, all));
    }
    std::vector<HalvingStep> steps;
    Segment stretch = all;
    for (int distance = 1; distance < ranks; distance *= 2) {
      steps.push_back(HalvingStepOf(call_.rank, distance, stretch));
      stretch = steps.back().kept;
      RETURN_IF_ERROR(CombineHalf(steps.back(), distance));
    }
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
      RETURN_IF_ERROR(call_.Post(step->peer, Of(step->kept)));
      RETURN_IF_ERROR(call_.Receive(step->peer, Of(step->given)));
    }
    if (folds) {
      RETURN_IF_ERROR(call_.Post(call_.rank + ranks, Of(all)));
    }
    return call_.Flush();
  }

 private:
  absl::Span<std::byte> Of(Segment s) const {
    return {data_ + s.begin * SizeOf(dtype_), static_cast<size_t>(s.size() * SizeOf(dtype_))};
  }

  // The whole vector of a rank that takes no part in the tree.
  absl::Status Fold(Rank from, Segment all) {
    const absl::Span<std::byte> theirs = call_.Scratch(static_cast<int64_t>(Of(all).size()));
    RETURN_IF_ERROR(call_.Receive(from, theirs));
    CombineAll(DotsOfAll(data_, theirs.data(), all), data_, theirs.data(), all);
    return absl::OkStatus();
  }

  absl::Status CombineHalf(const HalvingStep& step, int distance) {
    const absl::Span<std::byte> theirs = call_.Scratch(static_cast<int64_t>(Of(step.kept).size()));
    RETURN_IF_ERROR(call_.SendRecv(step.peer, Of(step.given), step.peer, theirs));
    // a is the vector of the lower side, at both.
    const bool lower = call_.rank < step.peer;
    const std::byte* mine = Of(step.kept).data();
    const std::byte* a = lower ? mine : theirs.data();
    const std::byte* b = lower ? theirs.data() : mine;
    std::vector<Dots> dots = DotsOfAll(a, b, step.kept);
    RETURN_IF_ERROR(AddUp(dots, 2 * distance));
    CombineAll(dots, a, b, step.kept);
    return absl::OkStatus();
  }

  // Over the `ranks` ranks that hold the pair together. Sums of two are the same in either order, so all of them get
  // the same bits.
  absl::Status AddUp(std::vector<Dots>& dots, int ranks) {
    const auto bytes = [](std::vector<Dots>& of) {
      return absl::Span<std::byte>(reinterpret_cast<std::byte*>(of.data()), of.size() * sizeof(Dots));
    };
    std::vector<Dots> theirs(dots.size());
    for (int distance = 1; distance < ranks; distance *= 2) {
      const Rank peer = call_.rank ^ distance;
      RETURN_IF_ERROR(call_.SendRecv(peer, bytes(dots), peer, bytes(theirs)));
      for (size_t i = 0; i < dots.size(); ++i) {
        dots[i].ab += theirs[i].ab;
        dots[i].aa += theirs[i].aa;
        dots[i].bb += theirs[i].bb;
      }
    }
    return absl::OkStatus();
  }

  // `body(piece, part)` for what each piece has in `stretch`.
  template <typename Body>
  void ForPieces(Segment stretch, const Body& body) const {
    for (size_t piece = 0; piece + 1 < begins_.size(); ++piece) {
      const Segment part{std::max(begins_[piece], stretch.begin), std::min(begins_[piece + 1], stretch.end)};
      if (part.size() > 0) body(piece, part);
    }
  }

  template <typename Body>
  void ForType(const Body& body) const {
    switch (dtype_) {
      case DType::kFloat16:
        return body(Float16());
      case DType::kBfloat16:
        return body(Bfloat16());
      case DType::kFloat32:
        return body(Plain<float>());
      default:
        return body(Plain<double>());
    }
  }

  // `a` and `b` begin where `stretch` does.
  std::vector<Dots> DotsOfAll(const std::byte* a, const std::byte* b, Segment stretch) const {
    std::vector<Dots> dots(begins_.size() - 1);
    ForType([&]<typename Type>(Type) {
      ForPieces(stretch, [&](size_t piece, Segment part) {
        const int64_t at = (part.begin - stretch.begin) * SizeOf(dtype_);
        dots[piece] = DotsOf<Type>(a + at, b + at, part.size());
      });
    });
    return dots;
  }

  void CombineAll(const std::vector<Dots>& dots, const std::byte* a, const std::byte* b, Segment stretch) const {
    ForType([&]<typename Type>(Type) {
      ForPieces(stretch, [&](size_t piece, Segment part) {
        const int64_t at = (part.begin - stretch.begin) * SizeOf(dtype_);
        Combine<Type>(dots[piece], a + at, b + at, Of(part).data(), part.size());
      });
    });
  }

  const CollectiveCall& call_;
  std::byte* const data_;
  const DType dtype_;
  std::vector<int64_t> begins_;  // of the pieces, and the end
};

}  // namespace

absl::Status AdasumInPlace(const CollectiveCall& call, std::byte* data, absl::Span<const int64_t> pieces, DType dtype) {
  return Adasum(call, data, pieces, dtype).Run();
}

}  // namespace farandole
