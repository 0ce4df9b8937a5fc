#include "collectives/engine/fusion.h"

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
      parts[i].bytes += Bytes(asked);
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
    for (size_t j = i; j < parts.size(); ++j) {
      if (taken[j]) continue;
      if (j != i && (!RunTogether(*parts[i].first, *parts[j].first) || bytes + parts[j].bytes > threshold_bytes))
        continue;
      taken[j] = true;
      bytes += parts[j].bytes;
      for (const Announcement* asked : parts[j].requests) response.names.push_back(asked->name);
    }
    responses.push_back(std::move(response));
  }
  return responses;
}

}  // namespace farandole
