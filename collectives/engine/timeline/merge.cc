#include "collectives/engine/timeline/merge.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace farandole {
namespace {

using Json = nlohmann::json;

// Line by line: only the last may be damaged.
absl::StatusOr<std::vector<Json>> EventsOf(const RankTrace& trace) {
  std::vector<Json> events;
  if (!absl::StartsWith(trace.text, "[")) {
    return absl::InvalidArgumentError(absl::StrCat("the timeline of rank ", trace.rank, " does not begin with ["));
  }
  int number = 0;
  bool damaged = false;
  for (absl::string_view line : absl::StrSplit(trace.text.substr(1), '\n')) {
    ++number;
    line = absl::StripSuffix(absl::StripAsciiWhitespace(line), ",");
    if (line.empty() || line == "]") continue;
    Json event = Json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
    if (damaged) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number - 1, " of the timeline of rank ", trace.rank, " is no event"));
    }
    damaged = !event.is_object();
    if (!damaged) events.push_back(std::move(event));
  }
  return events;
}

bool IsMetadata(const Json& event, const char* name) {
  const auto ph = event.find("ph");
  const auto found = event.find("name");
  return ph != event.end() && *ph == "M" && found != event.end() && *found == name;
}

// Gives the event its process in the whole.
void Move(Json& event, int rank, int64_t first_pid) {
  const auto pid = event.find("pid");
  if (pid == event.end() || !pid->is_number_integer()) return;
  *pid = pid->get<int64_t>() + first_pid;
  const auto args = event.find("args");
  if (args == event.end() || !args->is_object()) return;
  if (IsMetadata(event, "process_sort_index")) (*args)["sort_index"] = *pid;
  if (!IsMetadata(event, "process_name")) return;
  const auto name = args->find("name");
  (*args)["name"] =
      absl::StrCat("rank ", rank, name != args->end() && name->is_string() ? ": " + name->get<std::string>() : "");
}

}  // namespace

absl::StatusOr<std::string> MergeTraces(absl::Span<const RankTrace> traces) {
  std::vector<RankTrace> sorted(traces.begin(), traces.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
  std::string out = "[";
  int64_t first_pid = 0;
  for (const RankTrace& trace : sorted) {
    absl::StatusOr<std::vector<Json>> events = EventsOf(trace);
    if (!events.ok()) return events.status();
    int64_t next_pid = first_pid + 1;
    for (Json& event : *events) {
      Move(event, trace.rank, first_pid);
      const auto pid = event.find("pid");
      if (pid != event.end() && pid->is_number_integer()) next_pid = std::max(next_pid, pid->get<int64_t>() + 1);
      absl::StrAppend(&out, out.size() > 1 ? ",\n" : "\n", event.dump(-1, ' ', false, Json::error_handler_t::replace));
    }
    first_pid = next_pid;
  }
  return out + "\n]\n";
}

}  // namespace farandole
