#include "launcher/exec/watching.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "launcher/exec/instance_files.h"
#include "launcher/exec/progress.h"

namespace farandole {

void Watching::OnView(const DriverView& view) {
  if (progress_ && !IsStarted(view)) output_->Progress(ProgressText(view));
  if (progress_ && IsStarted(view)) output_->EndProgress();
  progress_ = progress_ && !IsStarted(view);
  if (!ended_at_ && view.phase == JobPhase::kEnding) ended_at_ = absl::Now();
  NotePlaces(view);
  if (!verbose_) return;
  NoteSteps(view);
  NoteListeners(view);
}

void Watching::Note(absl::string_view text) {
  if (verbose_) output_->Note(absl::StrCat("farandole: ", text));
}

// A worker's place when it starts, and in each generation.
void Watching::NotePlaces(const DriverView& view) {
  std::vector<PlacedWorker> started, placed;
  for (const DriverView::Worker& worker : view.workers) {
    if (worker.process_started && started_.insert(worker.id).second) started.push_back({worker.id, worker.placement});
    if (worker.state != WorkerState::kGone) placed.push_back({worker.id, worker.placement});
  }
  if (!started.empty()) output_->Place(Generation(), started);
  if (view.generation == generation_) return;
  generation_ = view.generation;
  output_->Place(generation_, placed);
}

void Watching::NoteSteps(const DriverView& view) {
  for (const DriverView::Agent& agent : view.agents) {
    const auto standing = std::make_pair(agent.step, agent.note);
    const auto [known, is_new] = standings_.try_emplace(agent.host, standing);
    if (!is_new && known->second == standing) continue;
    known->second = standing;
    Note(absl::StrCat("host ", agent.host, ": ", ToString(agent.step), agent.note.empty() ? "" : ": ", agent.note,
                      absl::StrFormat(" (%.3f s)", absl::ToDoubleSeconds(absl::Now() - began_at_))));
  }
}

void Watching::NoteListeners(const DriverView& view) {
  for (const DriverView::Worker& worker : view.workers) {
    if (worker.endpoint.empty() || !listeners_.insert(worker.endpoint).second) continue;
    Note(absl::StrCat("rank ", worker.placement.rank, " listens on ", worker.endpoint));
  }
}

}  // namespace farandole
