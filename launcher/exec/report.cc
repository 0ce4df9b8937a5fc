#include "launcher/exec/report.h"

#include <algorithm>
#include <csignal>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "driver/core/host_step.h"
#include "launcher/exec/signal_name.h"

namespace farandole {
namespace {

constexpr absl::string_view kRed = "\x1b[1;31m", kPlain = "\x1b[0m";

std::string How(const WorkerEnd& end) {
  if (!end.what.empty()) return absl::StrCat("could not be executed: ", end.what);
  if (end.status.signal == 0) return absl::StrCat("exit code ", end.status.code);
  return absl::StrCat("ended by ", SignalName(end.status.signal));
}

// In a job whose membership never changes a slot's number is the local rank of its worker.
std::string Where(const WorkerEnd& end) {
  return absl::StrCat("rank ", end.rank, " (host ", end.worker.slot.host, ", local rank ", end.worker.slot.slot, ")");
}

std::string FirstFailure(const ReportInputs& inputs) {
  const WorkerEnd& first = inputs.verdict.first_failure;
  std::string text = absl::StrCat("farandole: ", inputs.colour ? kRed : "", Where(first), " failed first: ", How(first),
                                  inputs.colour ? kPlain : "");
  if (inputs.failed_at) absl::StrAppend(&text, ", at ", absl::FormatTime("%H:%M:%S", *inputs.failed_at, inputs.zone));
  if (first.status.signal == SIGKILL) {
    absl::StrAppend(&text,
                    first.out_of_memory
                        ? "\n  likely out of memory: the kernel has killed a process there for want of it"
                        : "\n  (nobody in this job sent it, and the kernel has counted no kill for want of memory)");
  }
  if (!first.what.empty()) return text;
  const std::vector<std::string> lines = inputs.last_error_lines(first.worker);
  if (lines.empty()) return absl::StrCat(text, "\n  it wrote nothing to stderr");
  return absl::StrCat(text, "\n  its last lines on stderr:\n    ", absl::StrJoin(lines, "\n    "));
}

std::string FollowOns(const Verdict& verdict) {
  std::string text;
  for (const WorkerEnd& end : verdict.follow_ons) {
    const bool same = !end.what.empty() && end.what == verdict.first_failure.what;
    absl::StrAppend(&text, "\n  after it ", Where(end), ": ", same ? "could not be executed either" : How(end));
  }
  return text;
}

std::string Overran(const Verdict& verdict) {
  std::string text;
  for (const WorkerEnd& end : verdict.overran) {
    absl::StrAppend(&text, "farandole: ", Where(end),
                    " was still there when its grace after SIGTERM was over, and was ", "killed\n");
  }
  return text;
}

// Where each host stopped that was not ready in time: a line each, in columns.
std::string NotUp(const Verdict& verdict) {
  if (verdict.not_up.empty()) return "";
  size_t width = 4;
  for (const HostStanding& host : verdict.not_up) width = std::max(width, host.host.size());
  std::string text = absl::StrFormat("  %-*s  %-12s  %s\n", width, "host", "stopped at", "because");
  for (const HostStanding& host : verdict.not_up) {
    absl::StrAppendFormat(&text, "  %-*s  %-12s  %s\n", width, host.host, ToString(host.step),
                          host.note.empty() ? "nothing came back" : host.note);
  }
  return text;
}

std::string Others(const ReportInputs& inputs) {
  const int others = inputs.np - 1 - static_cast<int>(inputs.verdict.follow_ons.size());
  if (others <= 0) return "";
  return absl::StrCat(
      "\n  the ", inputs.verdict.follow_ons.empty() ? "" : "remaining ", others,
      others == 1 ? " other had finished or was told to end" : " others had finished or were told to end");
}

}  // namespace

std::string FinalReport(const ReportInputs& inputs) {
  const Verdict& verdict = inputs.verdict;
  if (verdict.exit_code == 0 && !verdict.has_first_failure) return "";
  std::string text;
  if (verdict.has_first_failure) {
    text = absl::StrCat(FirstFailure(inputs), FollowOns(verdict), Others(inputs), "\n");
  }
  absl::StrAppend(&text, Overran(verdict), NotUp(verdict));
  const absl::string_view reason = verdict.reason.empty() ? "the job failed" : absl::string_view(verdict.reason);
  return absl::StrCat(text, "farandole: ", reason, "; exit code ", verdict.exit_code);
}

}  // namespace farandole
