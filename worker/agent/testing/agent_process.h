#pragma once

#include <sys/types.h>

#include <string>

#include "tools/base/unique_fd.h"

namespace farandole::testing {

// The real agent program (FARANDOLE_AGENT_PROGRAM), with the test as its starter.
class AgentProcess {
 public:
  // Writes `bootstrap` (a serialised AgentBootstrap) to its standard input. `option`: of its command line, or null.
  explicit AgentProcess(const std::string& bootstrap, const char* option = nullptr);
  ~AgentProcess();  // kills it if it still runs

  pid_t pid() const { return pid_; }
  void CloseInput() { input_.reset(); }
  void Signal(int signal);

  // What it has written to stderr.
  std::string Said() const;

  // Waits for its end and returns its exit code, or -SIGNAL, or -1000 after 30 s.
  int Wait();

 private:
  pid_t pid_ = 0;  // 0: it has been waited for
  UniqueFd input_, error_;
};

// Whether `pid` ends, and is not just asked to, within 30 s.
bool Ends(pid_t pid);

}  // namespace farandole::testing
