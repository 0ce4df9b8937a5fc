#include "driver/core/actions.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "driver/core/words.h"

namespace farandole {
namespace {

std::string Name(const SlotId& slot) { return absl::StrCat(slot.host, "/", slot.slot); }

std::string What(const StartAgent& action) { return absl::StrCat("start agent ", action.host); }

std::string What(const SpawnWorker& action) {
  return absl::StrCat("spawn ", Name(action.worker.slot), " rank=", action.placement.rank);
}

std::string What(const SendAssignment& action) {
  return absl::StrCat("generation ", action.generation.value(), ": ",
                      absl::StrJoin(action.members, " ", [](std::string* out, const AssignedMember& member) {
                        absl::StrAppend(out, Name(member.worker.slot), "=", member.placement.rank);
                      }));
}

std::string What(const SignalWorker& action) {
  return absl::StrCat("send ", SignalInWords(action.signal), " to ", Name(action.worker.slot));
}

std::string What(const EndAgent& action) {
  return absl::StrCat(action.force ? "end agent by force " : "end agent ", action.host);
}

std::string Line(const EndJob& action) {
  const Verdict& verdict = action.verdict;
  std::string line = absl::StrCat("end job: exit code ", verdict.exit_code);
  if (!verdict.reason.empty()) absl::StrAppend(&line, " (", verdict.reason, ")");
  for (const HostStanding& host : verdict.not_up) {
    absl::StrAppend(&line, "; host ", host.host, " stopped at \"", ToString(host.step), "\"",
                    host.note.empty() ? "" : ": ", host.note);
  }
  if (verdict.first_failure.out_of_memory) absl::StrAppend(&line, "; out of memory");
  for (const WorkerEnd& end : verdict.overran) absl::StrAppend(&line, "; rank ", end.rank, " overran its grace");
  for (const WorkerEnd& end : verdict.follow_ons) {
    absl::StrAppend(&line, "; then rank ", end.rank, " ",
                    end.what.empty() ? EndInWords(end.status) : absl::StrCat("could not be executed: ", end.what));
  }
  return line;
}

template <typename T>
std::string Line(const T& action) {
  return absl::StrCat(What(action), " (", action.reason, ")");
}

}  // namespace

std::string ToString(const Action& action) {
  return std::visit([](const auto& one) { return Line(one); }, action);
}

}  // namespace farandole
