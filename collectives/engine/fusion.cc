#include "collectives/engine/fusion.h"

#include <limits>
#include <utility>

namespace farandole {
namespace {

int64_t Bytes(const Announcement& asked) {
  return ElementCount(asked.shape, asked.dtype).value_or(0) * SizeOf(asked.dtype);
}

bool RunTogether(const Announcement& a, const Announcement& b) {
  return a.kind == OperationKind::kAllReduce && b.kind == OperationKind::kAllReduce && a.dtype == b.dtype &&
         a.op == b.op && a.prescale == b.prescale && a.postscale == b.postscale;
}

Response ResponseFor(const Announcement& asked) {
  Response response;
  response.kind = asked.kind;
  response.dtype = asked.dtype;
  response.op = asked.op;
  response.root = asked.root;
  response.prescale = asked.prescale;
  response.postscale = asked.postscale;
  return response;
}

int64_t Sum(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}

// A unit's requests that run together, in the place of the first of them.
struct Part {
  const Announcement* first = nullptr;
  std::vector<const Announcement*> requests;
  int64_t bytes = 0;
};

std::vector<Part> PartsOf(const std::vector<FusionUnit>& ready) {
  std::vector<Part> parts;
  for (const FusionUnit& unit : ready) {
    const size_t begin = parts.size();
    for (const Announcement& asked : unit) {
      size_t i = begin;
      while (i < parts.size() && !RunTogether(*parts[i].first, asked)) ++i;
      if (i == parts.size()) parts.push_back(Part{&asked, {}, 0});
      parts[i].requests.push_back(&asked);
      parts[i].bytes = Sum(parts[i].bytes, Bytes(asked));
    }
  }
  return parts;
}

}  // namespace

std::vector<Response> Fuse(const std::vector<FusionUnit>& ready, int64_t threshold_bytes) {
  const std::vector<Part> parts = PartsOf(ready);
  std::vector<bool> taken(parts.size(), false);
  std::vector<Response> responses;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (taken[i]) continue;
    Response response = ResponseFor(*parts[i].first);
    int64_t bytes = 0;
    const size_t end = threshold_bytes > 0 ? parts.size() : i + 1;
    for (size_t j = i; j < end; ++j) {
      if (taken[j]) continue;
      const int64_t with = Sum(bytes, parts[j].bytes);
      if (j != i && (with > threshold_bytes || !RunTogether(*parts[i].first, *parts[j].first))) continue;
      taken[j] = true;
      bytes = with;
      for (const Announcement* asked : parts[j].requests) response.names.push_back(asked->name);
    }
    responses.push_back(std::move(response));
  }
  return responses;
}

}  // namespace farandole
