#pragma once

#include <memory>
#include <string>

#include "driver/runtime/output_sink.h"

namespace farandole {

// Writes text to this process's stdout and stderr from a thread of its own, in the order in which it was given, and as
// few writes as that allows. A reader that is slow or stopped (Ctrl-S, a pager) holds up whoever chooses to wait, and
// nobody else.
//
// When a reader has gone (EPIPE) or a file cannot be written (ENOSPC), that stream is given up: one line on the other
// one says so, and the rest of its text is dropped. The job goes on: training for days is not lost with the window that
// showed it, or with `| head`. Whoever wants it to end ends it.
//
// Thread-safe.
class ConsoleWriter {
 public:
  // Borrowed descriptors.
  ConsoleWriter(int stdout_fd, int stderr_fd);
  // Writes what is left, unless abandoned.
  ~ConsoleWriter();

  // Does not block.
  void Enqueue(OutputStream stream, std::string text);
  // Blocks while more than kRoom bytes wait.
  void WaitForRoom();
  // Blocks until everything is written.
  void Flush();
  // Drops what waits and all that comes: nobody waits any more. For a person who wants out while the reader is stuck.
  void Abandon();

  static constexpr size_t kRoom = 1 << 20;

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with the thread, which an abandoned writer leaves behind in write(2)
};

}  // namespace farandole
