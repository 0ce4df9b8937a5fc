#include "tests/scenarios/scenario.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/types/optional.h"
#include "driver/core/driver_config.h"
#include "driver/core/host_step.h"
#include "driver/core/words.h"

namespace farandole {

// "verb word word name=value stranger"
struct Scenario::Command {
  explicit Command(const std::string& line) : text(line) {
    for (absl::string_view word : absl::StrSplit(line, ' ', absl::SkipEmpty())) {
      const std::vector<std::string> pair = absl::StrSplit(word, absl::MaxSplits('=', 1));
      if (verb.empty()) {
        verb = std::string(word);
      } else if (pair.size() == 2) {
        values[pair[0]] = pair[1];
      } else if (word == "stranger") {
        stranger = true;
      } else {
        words.emplace_back(word);
      }
    }
  }

  int Number(const std::string& name, int otherwise) const {
    int number = otherwise;
    const auto it = values.find(name);
    if (it != values.end() && !absl::SimpleAtoi(it->second, &number)) unreadable = true;
    return number;
  }
  void Duration(const std::string& name, absl::Duration* duration) const {
    const auto it = values.find(name);
    if (it != values.end() && !absl::ParseDuration(it->second, duration)) unreadable = true;
  }
  absl::Duration FirstWordAsDuration() const {
    absl::Duration duration;
    if (words.size() != 1 || !absl::ParseDuration(words[0], &duration)) unreadable = true;
    return duration;
  }
  std::string Value(const std::string& name) const {
    const auto it = values.find(name);
    return it == values.end() ? "" : it->second;
  }

  std::string text, verb;
  std::vector<std::string> words;
  std::map<std::string, std::string> values;
  bool stranger = false;
  mutable bool unreadable = false;
};

namespace {

std::vector<HostSlots> ParseHosts(const std::string& text) {
  std::vector<HostSlots> hosts;
  for (absl::string_view part : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    const std::vector<std::string> pair = absl::StrSplit(part, ':');
    HostSlots host{pair[0], 0};
    if (pair.size() == 2 && absl::SimpleAtoi(pair[1], &host.slots)) hosts.push_back(host);
  }
  return hosts;
}

absl::optional<HostStep> StepOf(absl::string_view word) {
  for (const HostStep step : {HostStep::kResolve, HostStep::kConnect, HostStep::kAuthenticate, HostStep::kAgent,
                              HostStep::kCallBack, HostStep::kWorkers}) {
    if (absl::StrReplaceAll(ToString(step), {{" ", "_"}}) == word) return step;
  }
  return absl::nullopt;
}

std::string Changed(absl::string_view before, absl::string_view after) {
  return before == after ? std::string(after) : absl::StrCat(before, " -> ", after);
}

std::string StateOf(const DriverView::Worker& worker) {
  std::string state = ToString(worker.state);
  if (worker.state != WorkerState::kGone) return state;
  if (worker.lost) return absl::StrCat(state, " (lost)");
  if (!worker.process_started && worker.exit.success()) return absl::StrCat(state, " (never started)");
  return absl::StrCat(state, " (", EndInWords(worker.exit), ")");
}

}  // namespace

std::string Scenario::Run(const std::vector<std::string>& commands) {
  output_.clear();
  for (const std::string& command : commands) RunOne(Command(command));
  return output_.empty() ? "(nothing)\n" : output_;
}

void Scenario::RunOne(const Command& command) {
  if (command.verb == "job") {
    StartJob(command);
  } else if (core_ == nullptr) {
    Error("the first command is \"job\"");
  } else if (command.verb == "silent") {
    silent_.insert(command.words.begin(), command.words.end());
  } else if (command.verb == "advance") {
    Advance(command.FirstWordAsDuration());
  } else if (command.verb == "sleep") {
    now_ = now_ + command.FirstWordAsDuration();
    Tick();
  } else {
    StepEach(command);
  }
  if (command.unreadable) Error(absl::StrCat("cannot read \"", command.text, "\""));
}

void Scenario::StartJob(const Command& command) {
  DriverConfig config;
  config.np = command.Number("np", 1);
  config.hosts = ParseHosts(command.Value("hosts"));
  command.Duration("grace", &config.grace);
  command.Duration("start_timeout", &config.start_timeout);
  command.Duration("join_timeout", &config.join_timeout);
  command.Duration("lost_after", &config.lost_after);
  command.Duration("end_timeout", &config.end_timeout);
  for (const std::string& problem : config.Validate()) Error(problem);
  if (!output_.empty()) return;
  heartbeat_interval_ = config.heartbeat_interval;
  start_ = now_ = Instant::FromNanos(1'000'000'000);
  core_ = std::make_unique<DriverCore>(config, /*seed=*/1);
  Actions actions;
  core_->Start(now_, &actions);
  Print(actions);
}

void Scenario::StepEach(const Command& command) {
  const std::string& verb = command.verb;
  if (verb == "interrupt") {
    if (command.words.size() != 1) return Error("interrupt by what?");
    return Step(Interrupted{command.words[0] == "INT" ? SIGINT : SIGTERM});
  }
  if (verb == "held") return Step(OutputHeld{});
  if (command.words.empty()) return Error(absl::StrCat("nobody is named in \"", command.text, "\""));
  const std::string& first = command.words[0];
  if (verb == "step") {
    const auto step = StepOf(first);
    if (!step || command.words.size() < 2) return Error(absl::StrCat("cannot read \"", command.text, "\""));
    const std::string& host = command.words[1];
    const std::string note = absl::StrJoin(command.words.begin() + 2, command.words.end(), " ");
    return Step(AgentProgress{host, AgentOf(host, command.stranger), *step, note});
  }
  if (verb == "ending") {
    const std::string reason = absl::StrJoin(command.words.begin() + 1, command.words.end(), " ");
    return Step(AgentEnding{first, AgentOf(first, command.stranger), reason});
  }
  if (verb == "failed") {
    const std::string reason = absl::StrJoin(command.words.begin() + 1, command.words.end(), " ");
    silent_.insert(first);
    return Step(AgentFailed{first, AgentOf(first, command.stranger), reason});
  }
  for (const std::string& name : command.words) {
    const bool stranger = command.stranger;
    if (verb == "ready") {
      Step(AgentReady{name, AgentOf(name, stranger), {}});
    } else if (verb == "ended") {
      Step(AgentEnded{name, AgentOf(name, stranger)});
    } else if (verb == "started") {
      Step(WorkerStarted{WorkerOf(name, stranger), 1});
    } else if (verb == "unstartable") {
      Step(WorkerStartFailed{WorkerOf(name, stranger), command.Number("errno", 0), command.Value("what")});
    } else if (verb == "joined") {
      Step(WorkerJoined{WorkerOf(name, stranger), "endpoint", Generation(command.Number("after", 0))});
    } else if (verb == "saw_loss") {
      Step(WorkerSawLoss{WorkerOf(name, stranger), Generation(command.Number("generation", 1))});
    } else if (verb == "left") {
      Step(WorkerLeft{WorkerOf(name, stranger), Generation(command.Number("generation", 0))});
    } else if (verb == "exit") {
      const ExitStatus status{command.Number("code", 0), command.Number("signal", 0)};
      Step(WorkerExited{WorkerOf(name, stranger), status, command.Number("oom", 0) == 1});
    } else {
      return Error(absl::StrCat("no command is called \"", verb, "\""));
    }
  }
}

void Scenario::Advance(absl::Duration time) {
  print_time_ = true;
  const Instant end = now_ + time;
  Instant heartbeat = now_ + heartbeat_interval_;
  while (now_ < end) {
    now_ = std::min({end, heartbeat, std::max(now_, core_->NextDeadline())});
    if (now_ == heartbeat) {
      SignsOfLife();
      heartbeat = heartbeat + heartbeat_interval_;
    }
    Tick();
  }
  print_time_ = false;
}

void Scenario::SignsOfLife() {
  for (const DriverView::Agent& agent : core_->View().agents) {
    const bool there = agent.state == AgentState::kReady || agent.state == AgentState::kEnding;
    if (there && silent_.count(agent.host) == 0) Step(AgentHeard{agent.host, agent.incarnation});
  }
}

void Scenario::Step(const Event& event) {
  const DriverView before = core_->View();
  Actions actions;
  core_->Step(now_, event, &actions);
  Print(actions);
  PrintChanges(before, core_->View());
}

void Scenario::Tick() {
  const DriverView before = core_->View();
  Actions actions;
  core_->Tick(now_, &actions);
  Print(actions);
  PrintChanges(before, core_->View());
}

void Scenario::Print(const Actions& actions) {
  for (const Action& action : actions) Line(ToString(action));
  if (const absl::Status status = core_->CheckInvariants(); !status.ok()) Error(status.message());
}

void Scenario::PrintChanges(const DriverView& before, const DriverView& after) {
  if (before.phase != after.phase)
    Line(absl::StrCat("  job: ", Changed(ToString(before.phase), ToString(after.phase))));
  for (size_t i = 0; i < after.agents.size(); ++i) {
    const DriverView::Agent &was = before.agents[i], &is = after.agents[i];
    if (is.state == AgentState::kStarting && (was.step != is.step || was.note != is.note)) {
      Line(absl::StrCat("  host ", is.host, ": ", ToString(is.step), is.note.empty() ? "" : ": ", is.note));
    }
    if (was.state == is.state) continue;
    Line(absl::StrCat("  agent ", after.agents[i].host, ": ",
                      Changed(ToString(before.agents[i].state), ToString(after.agents[i].state))));
  }
  for (size_t i = 0; i < after.workers.size(); ++i) {
    const DriverView::Worker& worker = after.workers[i];
    if (before.workers[i].state == worker.state) continue;
    Line(absl::StrCat("  ", worker.id.slot.host, "/", worker.id.slot.slot, ": ",
                      Changed(ToString(before.workers[i].state), StateOf(worker))));
  }
  if (before.stale_dropped != after.stale_dropped) {
    Line(absl::StrCat("  dropped: ", after.stale_dropped - before.stale_dropped, " event about the past"));
  }
}

void Scenario::Line(absl::string_view text) {
  if (print_time_) absl::StrAppend(&output_, absl::FormatDuration(now_ - start_), " ");
  absl::StrAppend(&output_, text, "\n");
}

void Scenario::Error(absl::string_view text) { absl::StrAppend(&output_, "error: ", text, "\n"); }

Incarnation Scenario::AgentOf(const std::string& host, bool stranger) const {
  if (stranger) return Incarnation(1);
  for (const DriverView::Agent& agent : core_->View().agents) {
    if (agent.host == host) return agent.incarnation;
  }
  return Incarnation(1);
}

WorkerId Scenario::WorkerOf(const std::string& slot, bool stranger) const {
  const std::vector<std::string> pair = absl::StrSplit(slot, '/');
  WorkerId id{SlotId{pair[0], -1}, Incarnation(1)};
  if (pair.size() != 2 || !absl::SimpleAtoi(pair[1], &id.slot.slot)) return id;
  for (const DriverView::Worker& worker : core_->View().workers) {
    if (worker.id.slot == id.slot && !stranger) return worker.id;
  }
  return id;
}

}  // namespace farandole
