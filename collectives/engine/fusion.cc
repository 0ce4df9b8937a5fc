#include "collectives/engine/fusion.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace farandole {
namespace {

int64_t Bytes(const Announcement& asked) {
  return ElementCount(asked.shape, asked.dtype).value_or(0) * SizeOf(asked.dtype);
}

bool RunTogether(const ReadyRequest& one, const ReadyRequest& other) {
  const Announcement& a = one.asked;
  const Announcement& b = other.asked;
  return a.kind == OperationKind::kAllReduce && b.kind == OperationKind::kAllReduce && a.dtype == b.dtype &&
         a.op == b.op && a.prescale == b.prescale && a.postscale == b.postscale && one.joined == other.joined;
}

Response ResponseFor(const ReadyRequest& ready) {
  Response response;
  response.kind = ready.asked.kind;
  response.dtype = ready.asked.dtype;
  response.op = ready.asked.op;
  response.root = ready.asked.root;
  response.prescale = ready.asked.prescale;
  response.postscale = ready.asked.postscale;
  response.first_dims = ready.first_dims;
  response.joined = ready.joined;
  return response;
}

int64_t Sum(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}

// A unit's requests that run together, in the place of the first of them.
struct Part {
  const ReadyRequest* first = nullptr;
  std::vector<const ReadyRequest*> requests;
  int64_t bytes = 0;
  bool apart = false;  // runs with no other part
};

std::vector<Part> PartsOf(const std::vector<FusionUnit>& ready, const FusionRules& rules) {
  std::vector<Part> parts;
  for (const FusionUnit& unit : ready) {
    const size_t begin = parts.size();
    for (const ReadyRequest& request : unit) {
      size_t i = begin;
      while (i < parts.size() && !RunTogether(*parts[i].first, request)) ++i;
      if (i == parts.size()) parts.push_back(Part{&request, {}, 0, rules.groups_apart && unit.size() > 1});
      parts[i].requests.push_back(&request);
      parts[i].bytes = Sum(parts[i].bytes, Bytes(request.asked));
    }
  }
  return parts;
}

void Append(const Part& part, Response& response) {
  for (const ReadyRequest* request : part.requests) {
    response.names.push_back(request->asked.name);
    if (!response.joined.empty()) response.shapes.push_back(request->asked.shape);
  }
}

}  // namespace

std::vector<Response> Fuse(std::vector<FusionUnit> ready, const FusionRules& rules) {
  std::stable_sort(ready.begin(), ready.end(), [](const FusionUnit& a, const FusionUnit& b) {
    return a.front().asked.priority > b.front().asked.priority;
  });
  const std::vector<Part> parts = PartsOf(ready, rules);
  std::vector<bool> taken(parts.size(), false);
  std::vector<Response> responses;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (taken[i]) continue;
    Response response = ResponseFor(*parts[i].first);
    int64_t bytes = 0;
    const size_t end = rules.threshold_bytes > 0 && !parts[i].apart ? parts.size() : i + 1;
    for (size_t j = i; j < end; ++j) {
      if (taken[j]) continue;
      const int64_t with = Sum(bytes, parts[j].bytes);
      const bool fits = with <= rules.threshold_bytes && !parts[j].apart;
      if (j != i && (!fits || !RunTogether(*parts[i].first, *parts[j].first))) continue;
      taken[j] = true;
      bytes = with;
      Append(parts[j], response);
    }
    responses.push_back(std::move(response));
  }
  return responses;
}

}  // namespace farandole
