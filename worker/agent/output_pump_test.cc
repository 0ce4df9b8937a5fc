#include "worker/agent/output_pump.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/clock.h"
#include "tools/base/mutex.h"

namespace farandole {
namespace {

using Kind = WorkerOutput::Stream;

WorkerId Id(int slot) { return {SlotId{"a", slot}, Incarnation(100 + slot)}; }

// A worker's end of its pipes.
struct Writer {
  UniqueFd out, err, result = UniqueFd();
};

void Write(const UniqueFd& fd, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd.get(), text.data(), text.size());
    ASSERT_GT(n, 0);
    text.remove_prefix(n);
  }
}

// A pump on a loop of its own; the test's thread is the workers and the driver.
class OutputPumpTest : public ::testing::Test {
 protected:
  OutputPumpTest() { ::signal(SIGPIPE, SIG_IGN); }
  ~OutputPumpTest() override {
    On([&] { pump_ = nullptr; });
    loop_.Stop();
    thread_.join();
  }

  void Make(int64_t credit) {
    On([&] {
      pump_ = std::make_unique<OutputPump>(&loop_, credit, [this](AgentReport report) { Take(std::move(report)); });
    });
  }

  Writer Add(int slot) {
    int out[2], err[2];
    EXPECT_EQ(::pipe2(out, O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(err, O_CLOEXEC), 0);
    for (const int fd : {out[0], err[0]}) ::fcntl(fd, F_SETFL, O_NONBLOCK);
    On([&] { pump_->Add(Id(slot), UniqueFd(out[0]), UniqueFd(err[0])); });
    return {UniqueFd(out[1]), UniqueFd(err[1])};
  }

  Writer AddWithResult(int slot) {
    int out[2], err[2], result[2];
    for (int* ends : {out, err, result}) {
      EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
      ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    }
    On([&] { pump_->Add(Id(slot), UniqueFd(out[0]), UniqueFd(err[0]), UniqueFd(result[0])); });
    return {UniqueFd(out[1]), UniqueFd(err[1]), UniqueFd(result[1])};
  }

  void Exit(int slot) {
    On([&] { pump_->WorkerExited(Id(slot)); });
  }

  void On(const std::function<void()>& work) {
    std::promise<void> done;
    loop_.Post([&] {
      work();
      done.set_value();
    });
    done.get_future().wait();
  }

  bool Await(const std::function<bool()>& condition) {
    MutexLock lock(&mutex_);
    return changed_.AwaitUntil(&mutex_, Now() + absl::Seconds(30), condition);
  }
  bool AwaitText(int slot, Kind kind, const std::string& text) {
    const bool came = Await([&] { return text_[{slot, kind}] == text; });
    if (!came) ADD_FAILURE() << "there is \"" << Text(slot, kind) << "\"";
    return came;
  }
  bool AwaitEnd(int slot) {
    return Await([&] { return std::count(ended_.begin(), ended_.end(), slot) == 1; });
  }
  std::string Text(int slot, Kind kind) {
    MutexLock lock(&mutex_);
    return text_[{slot, kind}];
  }

  EventLoop loop_;
  std::thread thread_{[this] { loop_.Run(); }};
  std::unique_ptr<OutputPump> pump_;

  Mutex mutex_;
  CondVar changed_;
  std::vector<WorkerOutput> outputs_;
  std::vector<int> ended_;
  std::map<std::pair<int, Kind>, std::string> text_;
  bool give_back_ = false;  // all credit at once

 private:
  void Take(AgentReport report) {
    MutexLock lock(&mutex_);
    if (auto* output = std::get_if<WorkerOutput>(&report)) {
      text_[{output->worker.slot.slot, output->stream}] += output->data;
      if (give_back_) {
        loop_.Post([this, bytes = output->data.size()] { pump_->Grant(static_cast<int64_t>(bytes)); });
      }
      outputs_.push_back(std::move(*output));
    } else {
      ended_.push_back(std::get<WorkerOutputEnded>(report).worker.slot.slot);
    }
    changed_.NotifyAll();
  }
};

TEST_F(OutputPumpTest, KeepsStreamsApartAndEndsAfterExitAndLastByte) {
  Make(1 << 20);
  Writer writer = Add(0);
  Write(writer.out, "one\ntwo");
  Write(writer.err, "oops\n");
  EXPECT_TRUE(AwaitText(0, Kind::kStdout, "one\n"));
  EXPECT_TRUE(AwaitText(0, Kind::kStderr, "oops\n"));
  writer = {};
  EXPECT_TRUE(AwaitText(0, Kind::kStdout, "one\ntwo"));
  EXPECT_TRUE(ended_.empty());
  Exit(0);
  EXPECT_TRUE(AwaitEnd(0));
  On([&] { EXPECT_TRUE(pump_->empty()); });
}

TEST_F(OutputPumpTest, AResultComesAsItIsUnderTheSameCreditAndTheEndWaitsForIt) {
  Make(10);
  Writer writer = AddWithResult(0);
  Write(writer.result, std::string("no\0line, and more than is allowed", 34));
  EXPECT_TRUE(AwaitText(0, Kind::kResult, std::string("no\0line, a", 10)));
  Write(writer.out, "x\n");
  writer = {};
  Exit(0);
  On([] {});
  EXPECT_TRUE(ended_.empty());
  On([&] { pump_->Grant(100); });
  EXPECT_TRUE(AwaitEnd(0));
  EXPECT_EQ(Text(0, Kind::kResult), std::string("no\0line, and more than is allowed", 34));
  EXPECT_EQ(Text(0, Kind::kStdout), "x\n");
}

TEST_F(OutputPumpTest, ShowsAPromptAfterAWhile) {
  Make(1 << 20);
  const Writer writer = Add(0);
  Write(writer.out, "Continue? ");
  EXPECT_TRUE(AwaitText(0, Kind::kStdout, "Continue? "));
}

TEST_F(OutputPumpTest, WithoutCreditTheWriterWaitsAndNothingIsLost) {
  Make(100);
  const Writer writer = Add(0);
  ::fcntl(writer.out.get(), F_SETFL, O_NONBLOCK);
  // 10 bytes a line; the pipe holds 64 KiB and the pump twice that.
  std::string written;
  const auto fill = [&] {
    while (true) {
      const std::string line = absl::StrCat(100'000'000 + written.size() / 10, "\n");
      if (::write(writer.out.get(), line.data(), line.size()) < 0) return;
      written += line;
    }
  };
  fill();
  EXPECT_TRUE(Await([&] { return text_[{0, Kind::kStdout}].size() == 100; }));
  for (int i = 0; i < 10; ++i) fill();
  On([] {});
  fill();
  EXPECT_LE(written.size(), 100u + (64 << 10) + (128 << 10));
  EXPECT_EQ(Text(0, Kind::kStdout).size(), 100u);
  pollfd room{writer.out.get(), POLLOUT, 0};
  EXPECT_EQ(::poll(&room, 1, 0), 0) << "the pipe is full";
  On([&] { pump_->Grant(45); });
  EXPECT_EQ(Text(0, Kind::kStdout), written.substr(0, 140)) << "whole lines only";
  On([&] { pump_->Grant(1 << 30); });
  EXPECT_TRUE(AwaitText(0, Kind::kStdout, written));
}

TEST_F(OutputPumpTest, TwentyMegabytesPassThroughASmallWindowInOrder) {
  give_back_ = true;
  Make(64 << 10);
  std::vector<std::string> written(2);
  std::vector<std::thread> threads;
  for (int slot : {0, 1}) {
    threads.emplace_back([&written, slot, writer = Add(slot)] {
      std::string chunk;
      while (written[slot].size() < (10 << 20)) {
        chunk.clear();
        while (chunk.size() < 5000) {
          const size_t at = written[slot].size() + chunk.size();
          absl::StrAppend(&chunk, "line at ", at, std::string(at % 97, '.'), "\n");
        }
        Write(writer.out, chunk);
        written[slot] += chunk;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int slot : {0, 1}) {
    Exit(slot);
    EXPECT_TRUE(AwaitEnd(slot));
    EXPECT_TRUE(Text(slot, Kind::kStdout) == written[slot]) << "slot " << slot;
  }
  for (const WorkerOutput& output : outputs_) {
    ASSERT_TRUE(absl::EndsWith(output.data, "\n") && absl::StartsWith(output.data, "line at ")) << "whole lines only";
    ASSERT_LE(output.data.size(), size_t{64} << 10);
  }
}

TEST_F(OutputPumpTest, WorkersTakeTurns) {
  Make(1000);
  const Writer loud = Add(0), quiet = Add(1);
  for (int i = 0; i < 500; ++i) Write(loud.out, std::string(99, 'x') + "\n");
  EXPECT_TRUE(Await([&] { return text_[{0, Kind::kStdout}].size() == 1000; }));
  Write(quiet.out, "hello\n");
  // The quiet one is heard after one more turn of the loud one, however much that still has to say.
  for (int grants = 0; grants < 100 && Text(1, Kind::kStdout).empty(); ++grants) {
    On([&] { pump_->Grant(100); });
  }
  EXPECT_EQ(Text(1, Kind::kStdout), "hello\n");
  EXPECT_LT(Text(0, Kind::kStdout).size(), 10'000u);
}

TEST_F(OutputPumpTest, AHelperThatKeepsThePipeDoesNotHoldTheEnd) {
  Make(1 << 20);
  const Writer helper = Add(0);  // stays open
  Write(helper.out, "last words");
  Exit(0);
  EXPECT_TRUE(AwaitEnd(0));
  EXPECT_EQ(Text(0, Kind::kStdout), "last words");
  EXPECT_EQ(::write(helper.err.get(), "x", 1), -1) << "the pipe is closed";
}

TEST_F(OutputPumpTest, WhatADeadWorkerWroteWaitsForCreditLongerThanAHelper) {
  Make(10);
  Writer writer = Add(0);
  std::string written;
  for (int i = 0; i < 3000; ++i) absl::StrAppend(&written, "123456789\n");
  Write(writer.out, written);
  Exit(0);  // and a helper keeps the pipe
  EXPECT_TRUE(Await([&] { return text_[{0, Kind::kStdout}].size() == 10; }));
  std::promise<void> later;  // past the helper's second
  On([&] { loop_.At(Now() + absl::Milliseconds(1200), [&] { later.set_value(); }); });
  later.get_future().wait();
  EXPECT_TRUE(ended_.empty());
  On([&] { pump_->Grant(1 << 20); });
  EXPECT_TRUE(AwaitEnd(0));
  EXPECT_TRUE(Text(0, Kind::kStdout) == written);
}

TEST_F(OutputPumpTest, DiscardLetsWritersRun) {
  Make(10);
  Writer writer = Add(0);
  std::thread thread([&] {
    for (int i = 0; i < 1000; ++i) Write(writer.out, std::string(999, 'x') + "\n");
    writer = {};
  });
  On([&] { pump_->Discard(); });
  thread.join();
  Exit(0);
  EXPECT_TRUE(AwaitEnd(0));
  EXPECT_LE(Text(0, Kind::kStdout).size(), 10u) << "what had credit before";
}

}  // namespace
}  // namespace farandole
