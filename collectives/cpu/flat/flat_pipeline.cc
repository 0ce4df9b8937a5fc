#include "collectives/cpu/flat/flat_pipeline.h"

#include <algorithm>
#include <cstring>

#include "collectives/cpu/reduce.h"
#include "collectives/schedule/flat_schedule.h"
#include "collectives/schedule/segment.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

constexpr int64_t kCacheLine = 64;

void Copy(std::byte* to, const std::byte* from, int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
}

}  // namespace

// --- the stages of each collective

struct FlatPipeline::AllReduceStages : Stages {
  AllReduceStages(FlatPipeline& pipeline, const Reduction& reduction)
      : p(pipeline), r(reduction), chunk_elements(p.area_bytes_ / r.width()), unit(kCacheLine / r.width()) {}

  int64_t chunks() const { return ChunkCount(r.count, chunk_elements); }
  Segment ChunkAt(int64_t index) const { return ChunkOf({0, r.count}, chunk_elements, index); }
  Segment Part(int64_t index, Rank owner) const { return FlatPart(ChunkAt(index), p.spec_.size(), owner, unit); }
  // Where the part stands in an area.
  std::byte* InArea(Rank rank, uint64_t chunk, int64_t index, Segment part) const {
    return p.slab_.area(rank, chunk) + (part.begin - ChunkAt(index).begin) * r.width();
  }

  void Stage(int64_t index, uint64_t chunk) override {
    for (Rank owner = 0; owner < p.spec_.size(); ++owner) {
      if (owner == p.spec_.rank) continue;
      const Segment part = Part(index, owner);
      Copy(InArea(p.spec_.rank, chunk, index, part), r.In(part.begin), part.size() * r.width());
    }
  }
  void Publish(int64_t index, uint64_t chunk) override {
    const Rank own = p.spec_.rank;
    const Segment part = Part(index, own);
    if (part.size() == 0) return;
    for (Rank rank = 0; rank < p.spec_.size(); ++rank) p.sources_[rank] = InArea(rank, chunk, index, part);
    p.sources_[own] = r.In(part.begin);
    const int divisor = r.op == ReduceOp::kAverage ? p.spec_.size() : 1;
    ReduceMany(r.dtype, r.op, p.sources_, InArea(own, chunk, index, part), r.Out(part.begin), part.size(), divisor);
  }
  void Take(int64_t index, uint64_t chunk, Rank peer) override {
    const Segment part = Part(index, peer);
    Copy(r.Out(part.begin), InArea(peer, chunk, index, part), part.size() * r.width());
  }

  FlatPipeline& p;
  const Reduction& r;
  const int64_t chunk_elements;
  const int64_t unit;
};

struct FlatPipeline::ReduceScatterStages : Stages {
  ReduceScatterStages(FlatPipeline& pipeline, const Reduction& reduction, const std::vector<int64_t>& begins)
      : p(pipeline),
        r(reduction),
        begins(begins),
        // Each owner has its own stretch of an area.
        stretch(p.area_bytes_ / p.spec_.size() / kCacheLine * kCacheLine / r.width()) {}

  int64_t chunks() const {
    int64_t most = 0;
    for (Rank rank = 0; rank < p.spec_.size(); ++rank) {
      most = std::max(most, ChunkCount(begins[rank + 1] - begins[rank], stretch));
    }
    return most;
  }
  Segment Part(int64_t index, Rank owner) const { return ChunkOf({begins[owner], begins[owner + 1]}, stretch, index); }
  std::byte* InArea(Rank rank, uint64_t chunk, Rank owner) const {
    return p.slab_.area(rank, chunk) + owner * stretch * r.width();
  }

  void Stage(int64_t index, uint64_t chunk) override {
    for (Rank owner = 0; owner < p.spec_.size(); ++owner) {
      if (owner == p.spec_.rank) continue;
      const Segment part = Part(index, owner);
      Copy(InArea(p.spec_.rank, chunk, owner), r.In(part.begin), part.size() * r.width());
    }
  }
  // All have staged: the owner takes from everybody at once.
  void Publish(int64_t index, uint64_t chunk) override {
    const Rank own = p.spec_.rank;
    const Segment part = Part(index, own);
    if (part.size() == 0) return;
    for (Rank rank = 0; rank < p.spec_.size(); ++rank) p.sources_[rank] = InArea(rank, chunk, own);
    p.sources_[own] = r.In(part.begin);
    const int divisor = r.op == ReduceOp::kAverage ? p.spec_.size() : 1;
    ReduceMany(r.dtype, r.op, p.sources_, r.Out(part.begin - begins[own]), nullptr, part.size(), divisor);
  }
  FlatPipeline& p;
  const Reduction& r;
  const std::vector<int64_t>& begins;
  const int64_t stretch;
};

struct FlatPipeline::AllGatherStages : Stages {
  AllGatherStages(FlatPipeline& pipeline, absl::Span<const std::byte> input, absl::Span<std::byte> output,
                  const std::vector<int64_t>& begins)
      : p(pipeline), input(input), output(output), begins(begins) {}

  int64_t chunks() const {
    int64_t most = 0;
    for (Rank rank = 0; rank < p.spec_.size(); ++rank) {
      most = std::max(most, ChunkCount(begins[rank + 1] - begins[rank], p.area_bytes_));
    }
    return most;
  }
  Segment Part(int64_t index, Rank rank) const {
    return ChunkOf({begins[rank], begins[rank + 1]}, p.area_bytes_, index);
  }
  void Stage(int64_t index, uint64_t chunk) override {
    const Segment part = Part(index, p.spec_.rank);
    if (part.size() == 0) return;
    const std::byte* const from = input.data() + (part.begin - begins[p.spec_.rank]);
    std::memcpy(p.slab_.area(p.spec_.rank, chunk), from, static_cast<size_t>(part.size()));
    std::byte* const to = output.data() + part.begin;
    if (to != from) std::memcpy(to, from, static_cast<size_t>(part.size()));
  }
  void Take(int64_t index, uint64_t chunk, Rank peer) override {
    const Segment part = Part(index, peer);
    Copy(output.data() + part.begin, p.slab_.area(peer, chunk), part.size());
  }

  FlatPipeline& p;
  const absl::Span<const std::byte> input;
  const absl::Span<std::byte> output;
  const std::vector<int64_t>& begins;
};

struct FlatPipeline::AllToAllStages : Stages {
  AllToAllStages(FlatPipeline& pipeline, absl::Span<const std::byte> input, const std::vector<int64_t>& out,
                 absl::Span<std::byte> output, const std::vector<int64_t>& in)
      : p(pipeline),
        input(input),
        out(out),
        output(output),
        in(in),
        stretch(p.area_bytes_ / p.spec_.size() / kCacheLine * kCacheLine) {}

  void Stage(int64_t index, uint64_t chunk) override {
    const Rank own = p.spec_.rank;
    for (Rank to = 0; to < p.spec_.size(); ++to) {
      const Segment part = ChunkOf({out[to], out[to + 1]}, stretch, index);
      const std::byte* const from = input.data() + part.begin;
      if (to != own) {
        Copy(p.slab_.area(own, chunk) + to * stretch, from, part.size());
      } else {
        Copy(output.data() + in[own] + (part.begin - out[own]), from, part.size());
      }
    }
  }
  void Take(int64_t index, uint64_t chunk, Rank peer) override {
    const Segment part = ChunkOf({in[peer], in[peer + 1]}, stretch, index);
    Copy(output.data() + part.begin, p.slab_.area(peer, chunk) + p.spec_.rank * stretch, part.size());
  }

  FlatPipeline& p;
  const absl::Span<const std::byte> input;
  const std::vector<int64_t>& out;
  const absl::Span<std::byte> output;
  const std::vector<int64_t>& in;
  const int64_t stretch;
};

struct FlatPipeline::BroadcastStages : Stages {
  BroadcastStages(FlatPipeline& pipeline, absl::Span<std::byte> data, Rank root)
      : p(pipeline), data(data), root(root) {}

  Segment Part(int64_t index) const { return ChunkOf({0, static_cast<int64_t>(data.size())}, p.area_bytes_, index); }
  void Stage(int64_t index, uint64_t chunk) override {
    if (p.spec_.rank != root) return;
    const Segment part = Part(index);
    Copy(p.slab_.area(root, chunk), data.data() + part.begin, part.size());
  }
  bool Wants(Rank peer) const override { return peer == root; }
  void Take(int64_t index, uint64_t chunk, Rank peer) override {
    const Segment part = Part(index);
    Copy(data.data() + part.begin, p.slab_.area(root, chunk), part.size());
  }

  FlatPipeline& p;
  const absl::Span<std::byte> data;
  const Rank root;
};

// --- the collectives

absl::Status FlatPipeline::AllReduce(const Reduction& reduction, Instant deadline) {
  AllReduceStages stages(*this, reduction);
  return Run(stages, Shape::kReduce, stages.chunks(), deadline);
}

absl::Status FlatPipeline::ReduceScatter(const Reduction& reduction, const std::vector<int64_t>& begins,
                                         Instant deadline) {
  ReduceScatterStages stages(*this, reduction, begins);
  return Run(stages, Shape::kScatter, stages.chunks(), deadline);
}

absl::Status FlatPipeline::AllGather(absl::Span<const std::byte> input, absl::Span<std::byte> output,
                                     const std::vector<int64_t>& begins, Instant deadline) {
  AllGatherStages stages(*this, input, output, begins);
  return Run(stages, Shape::kGather, stages.chunks(), deadline);
}

absl::Status FlatPipeline::AllToAll(absl::Span<const std::byte> input, const std::vector<int64_t>& out,
                                    absl::Span<std::byte> output, const std::vector<int64_t>& in, int64_t largest,
                                    Instant deadline) {
  AllToAllStages stages(*this, input, out, output, in);
  return Run(stages, Shape::kGather, ChunkCount(largest, stages.stretch), deadline);
}

absl::Status FlatPipeline::Broadcast(absl::Span<std::byte> data, Rank root, Instant deadline) {
  BroadcastStages stages(*this, data, root);
  return Run(stages, Shape::kGather, ChunkCount(static_cast<int64_t>(data.size()), area_bytes_), deadline);
}

// --- the pipeline

// One chunk is staged ahead of the one that is published, which is one ahead of the one that is taken: with kSlots = 4
// nobody who keeps up ever waits for a slot.
absl::Status FlatPipeline::Run(Stages& stages, Shape shape, int64_t chunks, Instant deadline) {
  const int64_t lag = shape == Shape::kReduce ? 2 : 1;  // of taking behind staging
  for (int64_t i = 0; i < chunks + lag; ++i) {
    if (i < chunks) {
      RETURN_IF_ERROR(StageOne(stages, i, deadline));
    }
    if (shape != Shape::kGather && i >= 1 && i - 1 < chunks) {
      RETURN_IF_ERROR(PublishOne(stages, i - 1, deadline));
    }
    if (i < lag) continue;
    if (shape == Shape::kScatter) {
      Report(&FlatSlab::Progress::taken, chunks_ + static_cast<uint64_t>(i - lag) + 1);
    } else {
      RETURN_IF_ERROR(TakeOne(stages, shape, i - lag, deadline));
    }
  }
  chunks_ += static_cast<uint64_t>(chunks);
  return absl::OkStatus();
}

absl::Status FlatPipeline::StageOne(Stages& stages, int64_t index, Instant deadline) {
  const uint64_t chunk = chunks_ + static_cast<uint64_t>(index);
  if (chunk >= FlatSlab::kSlots) {
    for (Rank rank = 0; rank < spec_.size(); ++rank) {
      RETURN_IF_ERROR(Await(&FlatSlab::Progress::taken, rank, chunk - FlatSlab::kSlots + 1, deadline));
    }
  }
  stages.Stage(index, chunk);
  slab_.progress(spec_.rank).what[chunk % FlatSlab::kSlots].store(wait_.what(), std::memory_order_relaxed);
  Report(&FlatSlab::Progress::staged, chunk + 1);
  return absl::OkStatus();
}

absl::Status FlatPipeline::PublishOne(Stages& stages, int64_t index, Instant deadline) {
  const uint64_t chunk = chunks_ + static_cast<uint64_t>(index);
  for (Rank rank = 0; rank < spec_.size(); ++rank) {
    RETURN_IF_ERROR(AwaitStaged(rank, chunk, deadline));
  }
  stages.Publish(index, chunk);
  Report(&FlatSlab::Progress::published, chunk + 1);
  return absl::OkStatus();
}

absl::Status FlatPipeline::TakeOne(Stages& stages, Shape shape, int64_t index, Instant deadline) {
  const uint64_t chunk = chunks_ + static_cast<uint64_t>(index);
  // Each rank begins with its next one, so that they do not all read the same area.
  for (int step = 1; step < spec_.size(); ++step) {
    const Rank peer = (spec_.rank + step) % spec_.size();
    if (!stages.Wants(peer)) continue;
    RETURN_IF_ERROR(shape == Shape::kReduce ? Await(&FlatSlab::Progress::published, peer, chunk + 1, deadline)
                                            : AwaitStaged(peer, chunk, deadline));
    stages.Take(index, chunk, peer);
  }
  Report(&FlatSlab::Progress::taken, chunk + 1);
  return absl::OkStatus();
}

absl::Status FlatPipeline::AwaitStaged(Rank rank, uint64_t chunk, Instant deadline) {
  RETURN_IF_ERROR(Await(&FlatSlab::Progress::staged, rank, chunk + 1, deadline));
  const uint64_t what = slab_.progress(rank).what[chunk % FlatSlab::kSlots].load(std::memory_order_relaxed);
  return what == wait_.what() ? absl::OkStatus() : wait_.DifferentCollectives(rank);
}

absl::Status FlatPipeline::Await(FlatSlab::Count FlatSlab::Progress::*what, Rank rank, uint64_t chunks,
                                 Instant deadline) {
  const std::atomic<uint64_t>& count = (slab_.progress(rank).*what).chunks;
  if (finish_.finished()) return finish_.reason();
  if (count.load(std::memory_order_acquire) >= chunks) return absl::OkStatus();
  return wait_.Until([&] { return count.load() >= chunks; }, deadline);
}

void FlatPipeline::Report(FlatSlab::Count FlatSlab::Progress::*what, uint64_t chunks) {
  (slab_.progress(spec_.rank).*what).chunks.store(chunks);
  wait_.Notify();
}

}  // namespace farandole
