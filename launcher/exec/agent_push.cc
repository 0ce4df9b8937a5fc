#include "launcher/exec/agent_push.h"

#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/optional.h"
#include "launcher/exec/push_script.h"
#include "launcher/ssh/ssh_errors.h"
#include "tools/base/random_bytes.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

constexpr size_t kTokenBytes = 12;
constexpr size_t kErrorBytes = 4096;
constexpr int kMostFolders = 8;

struct Answer {
  std::vector<std::string> words;  // at least one
  std::string text;
  std::string rest;
};

absl::Status NoAnswer(const RemoteOutput& end, absl::string_view noise, absl::string_view error) {
  const std::string how =
      end.signal.empty() ? absl::StrCat("with exit code ", end.exit_code) : absl::StrCat("by signal ", end.signal);
  std::string text = absl::StrCat("the login shell there ended ", how, " instead of running `/bin/sh -c ...`");
  const std::string words = Quoted(error.empty() ? noise : error);
  if (!words.empty()) absl::StrAppend(&text, "; it said: ", words);
  return absl::FailedPreconditionError(text);
}

// Reads until the answer of the script with this token.
absl::StatusOr<Answer> Await(RemoteProcess& process, const std::string& token, Instant deadline) {
  AnswerScanner scanner(token);
  std::string error;
  while (true) {
    ASSIGN_OR_RETURN(RemoteOutput output, process.Read(deadline), std::move(_) << "waiting for the shell there");
    if (output.kind == RemoteOutput::Kind::kEnd) return NoAnswer(output, scanner.last_noise(), error);
    if (output.kind == RemoteOutput::Kind::kStderr) {
      if (error.size() < kErrorBytes) error.append(output.bytes, 0, kErrorBytes);
      continue;
    }
    if (const absl::optional<std::string> text = scanner.Append(output.bytes)) {
      return Answer{absl::StrSplit(*text, ' '), *text, scanner.rest()};
    }
    if (scanner.gave_up()) return absl::FailedPreconditionError("the login shell there prints without end");
  }
}

absl::Status CheckMachine(const std::vector<std::string>& words, const AgentProgram& program) {
  if (words.size() < 4) return absl::FailedPreconditionError("the host does not say what machine it is");
  if (words[1] == "Linux" && (program.machine().empty() || words[2] == program.machine())) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the host is ", Quoted(words[1]), " on ", Quoted(words[2]),
                                                    "; the agent is for Linux on ", program.machine(),
                                                    ", as this machine is"));
}

class Push {
 public:
  Push(RemoteShell& shell, AgentProgram& program, Instant deadline,
       const std::function<void(absl::string_view)>& on_note)
      : shell_(shell), program_(program), deadline_(deadline), on_note_(on_note) {
    script_.hash = program.hash();
  }

  absl::StatusOr<RemoteAgent> Run() {
    ASSIGN_OR_RETURN(absl::optional<RemoteAgent> agent, TryStart());
    if (agent.has_value()) return *std::move(agent);
    RETURN_IF_ERROR(Store());
    ASSIGN_OR_RETURN(agent, TryStart());
    if (agent.has_value()) return *std::move(agent);
    return absl::FailedPreconditionError("the agent was stored there and is gone again");
  }

 private:
  // None: it is not there.
  absl::StatusOr<absl::optional<RemoteAgent>> TryStart() {
    NewToken();
    ASSIGN_OR_RETURN(std::unique_ptr<RemoteProcess> process, shell_.Exec(script_.Start(), deadline_));
    ASSIGN_OR_RETURN(Answer answer, Await(*process, script_.token, deadline_));
    if (answer.words[0] == "need") {
      RETURN_IF_ERROR(CheckMachine(answer.words, program_));
      gzip_ = answer.words[3] == "gzip";
      return absl::optional<RemoteAgent>();
    }
    RemoteAgent agent;
    if (answer.words[0] != "start" || answer.words.size() < 2 || !absl::SimpleAtoi(answer.words[1], &agent.pid)) {
      return absl::FailedPreconditionError(absl::StrCat("an answer that makes no sense: ", Quoted(answer.text)));
    }
    if (answer.words.size() >= 6) {
      agent.our_address = answer.words[2];
      agent.its_address = answer.words[4];
    }
    agent.process = std::move(process);
    agent.stdout_so_far = std::move(answer.rest);
    return absl::optional<RemoteAgent>(std::move(agent));
  }

  absl::Status Store() {
    int skip = 0;
    std::string reasons;
    for (int attempt = 0; attempt < kMostFolders; ++attempt) {
      ASSIGN_OR_RETURN(const Answer answer, StoreAfter(skip));
      if (answer.words[0] == "stored") {
        on_note_(absl::StrCat("brought the agent there: ", Quoted(answer.text.substr(7))));
        return absl::OkStatus();
      }
      if (answer.words[0] == "failed" && answer.words.size() > 2 && absl::SimpleAtoi(answer.words[1], &skip)) {
        absl::StrAppend(&reasons, " ", Quoted(answer.text.substr(answer.words[1].size() + 8)), ";");
        continue;
      }
      if (answer.words[0] == "nowhere") absl::StrAppend(&reasons, Quoted(answer.text.substr(7)), ";");
      break;
    }
    return absl::FailedPreconditionError(absl::StrCat("no folder there takes the agent's program:", reasons,
                                                      " set XDG_CACHE_HOME or TMPDIR there to one that does"));
  }

  absl::StatusOr<Answer> StoreAfter(int skip) {
    NewToken();
    const std::string command = script_.Store(gzip_, program_.bytes().size(), skip);
    ASSIGN_OR_RETURN(std::unique_ptr<RemoteProcess> process, shell_.Exec(command, deadline_));
    // A script that gives up early reads no more; its answer says why.
    const absl::Status written = process->Write(gzip_ ? program_.packed() : program_.bytes(), deadline_);
    if (!written.ok() && !absl::IsFailedPrecondition(written)) return written;
    process->CloseInput();
    return Await(*process, script_.token, deadline_);
  }

  void NewToken() { script_.token = absl::BytesToHexString(RandomBytes(kTokenBytes)); }

  RemoteShell& shell_;
  AgentProgram& program_;
  const Instant deadline_;
  const std::function<void(absl::string_view)>& on_note_;
  PushScript script_;
  bool gzip_ = false;
};

}  // namespace

absl::StatusOr<RemoteAgent> StartRemoteAgent(RemoteShell& shell, AgentProgram& program, Instant deadline,
                                             const std::function<void(absl::string_view)>& on_note) {
  return Push(shell, program, deadline, on_note).Run();
}

absl::Status KillRemoteAgent(RemoteShell& shell, const AgentProgram& program, int64_t pid, Instant deadline) {
  PushScript script;
  script.hash = program.hash();
  ASSIGN_OR_RETURN(std::unique_ptr<RemoteProcess> process, shell.Exec(script.Kill(pid), deadline));
  while (true) {
    ASSIGN_OR_RETURN(const RemoteOutput output, process->Read(deadline));
    if (output.kind == RemoteOutput::Kind::kEnd) return absl::OkStatus();
  }
}

}  // namespace farandole
