#include "driver/core/verdict.h"

#include <csignal>

namespace farandole {
namespace {

bool CanAnswerToOurSignals(const ExitStatus& status) {
  return status.shell_code() == 128 + SIGTERM || status.shell_code() == 128 + SIGKILL;
}

}  // namespace

Outcome JudgeEnd(const EndFacts& facts) {
  if (!facts.job_is_ending) {
    if (facts.status.success()) return Outcome::kFinished;
    return facts.saw_loss ? Outcome::kVictim : Outcome::kFirstFailure;
  }
  if (!facts.job_has_first_failure || facts.status.success()) return Outcome::kEndedAsTold;
  if (facts.told_to_end && CanAnswerToOurSignals(facts.status)) return Outcome::kEndedAsTold;
  return Outcome::kFollowOn;
}

}  // namespace farandole
