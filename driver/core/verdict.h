#pragma once

#include "driver/core/ids.h"

namespace farandole {

// How a job's end follows from the ends of its workers. The whole of it, for a static job:
//
//   the worker                       | the job goes on              | the job is ending because  | the job is ending
//   for
//                                    |                              | of a first failure         | another reason
//   ---------------------------------+------------------------------+----------------------------+----------------------
//   exits 0                          | finished                     | ended as told              | ended as told
//   exits with another code          | first failure: that code (+) | follow-on (*)              | ended as told
//   is ended by a signal             | first failure: 128 + signal (+) | follow-on (*)           | ended as told
//   cannot be executed               | first failure: 127           | follow-on                  | ended as told
//   is lost with its agent           | lost: exit code 1            | lost                       | lost
//   does not end after KILL          |                              | lost                       | lost
//
//   (*) but "ended as told" if it was told to end and the status can be the answer: signal TERM or KILL, or the code
//   that
//       stands for one of them in a shell (143, 137).
//   (+) but "victim" if its library had told of a lost peer: agents report from several hosts, and who fails because of
//       another may be heard of before that other. The peer's end is waited for, for `blame_wait`. If it comes as a
//       failure, or an agent is lost, victims are follow-ons; if it does not come, the first victim is the first
//       failure.
//
// Finished is exit 0 in any state: before init, waiting in it, as a member (the original asks for no shutdown), or
// after having left. But a generation of a static job has all its workers as members. So while any worker waits in init
// and another has finished, none can form, and the job fails at once: exit code 1.
//
// The job:
//   all workers finished                          exit code 0
//   a first failure                               its code
//   interrupted                                   128 + the signal
//   an agent lost with live workers, or not started; no generation in time, or none possible      1
// Whatever comes first decides; nothing later changes the exit code.
enum class Outcome {
  kNone,  // not gone
  kFinished,
  kFirstFailure,
  kVictim,
  kFollowOn,
  kEndedAsTold,
  kLost,
  kNeverStarted,  // the job ended before
};

// What the outcome depends on at the moment when a worker's end is seen.
struct EndFacts {
  ExitStatus status;
  bool told_to_end = false;
  bool saw_loss = false;
  bool job_is_ending = false;
  bool job_has_first_failure = false;
};

Outcome JudgeEnd(const EndFacts& facts);

}  // namespace farandole
