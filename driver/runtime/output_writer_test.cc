#include "driver/runtime/output_writer.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/clock.h"
#include "tools/base/mutex.h"

namespace farandole {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const AgentIdentity kAgent{"a", Incarnation(1)};
const WorkerId kWorker{SlotId{"a", 0}, Incarnation(2)};
const WorkerId kOther{SlotId{"a", 1}, Incarnation(3)};

class FakeSink final : public OutputSink {
 public:
  void Write(const WorkerId&, int rank, OutputStream stream, absl::string_view data) override {
    MutexLock lock(&mutex_);
    in_write_ = true;
    changed_.NotifyAll();
    changed_.Await(&mutex_, [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return open_; });
    in_write_ = false;
    lines_.push_back(absl::StrCat(rank, stream == OutputStream::kStdout ? " out " : " err ", data));
    changed_.NotifyAll();
  }
  void End(const WorkerId&, int rank) override {
    MutexLock lock(&mutex_);
    lines_.push_back(absl::StrCat(rank, " end"));
    changed_.NotifyAll();
  }
  void SetOpen(bool open) {
    MutexLock lock(&mutex_);
    open_ = open;
    changed_.NotifyAll();
  }
  void AwaitWriter() {
    MutexLock lock(&mutex_);
    changed_.Await(&mutex_, [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return in_write_; });
  }
  void AwaitLines(size_t count) {
    MutexLock lock(&mutex_);
    changed_.Await(&mutex_, [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return lines_.size() == count; });
  }
  std::vector<std::string> lines() {
    MutexLock lock(&mutex_);
    return lines_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool open_ ABSL_GUARDED_BY(mutex_) = true;
  bool in_write_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
};

class OutputWriterTest : public ::testing::Test {
 protected:
  OutputWriterTest()
      : writer_(&sink_, /*credit_step=*/4, [this](const AgentIdentity& agent, int64_t bytes) {
          MutexLock lock(&mutex_);
          EXPECT_EQ(agent, kAgent);
          credits_.push_back(bytes);
        }) {
    writer_.AddWorker(kWorker, 7);
  }
  void Write(const std::string& data, OutputStream stream = OutputStream::kStdout) {
    writer_.Write(kAgent, {kWorker, stream, data});
  }
  std::vector<int64_t> credits() {
    MutexLock lock(&mutex_);
    return credits_;
  }

  FakeSink sink_;
  Mutex mutex_;
  std::vector<int64_t> credits_ ABSL_GUARDED_BY(mutex_);
  OutputWriter writer_;
};

TEST_F(OutputWriterTest, WritesInOrderAndThenEnds) {
  Write("1");
  Write("2", OutputStream::kStderr);
  writer_.End({kWorker});
  EXPECT_TRUE(writer_.Finish());
  EXPECT_THAT(sink_.lines(), ElementsAre("7 out 1", "7 err 2", "7 end"));
  Write("late");
  EXPECT_TRUE(writer_.Finish());
  EXPECT_EQ(sink_.lines().size(), 3);
}

TEST_F(OutputWriterTest, CreditComesInStepsAndTheRestWhenAllIsWritten) {
  sink_.SetOpen(false);
  Write("a");
  sink_.AwaitWriter();
  for (const char* data : {"bb", "ccc", "d"}) Write(data);
  EXPECT_THAT(credits(), IsEmpty());
  sink_.SetOpen(true);
  EXPECT_TRUE(writer_.Finish());
  EXPECT_THAT(credits(), ElementsAre(6, 1));
}

TEST_F(OutputWriterTest, WorkersThatWereNotAddedAreDropped) {
  writer_.Write(kAgent, {kOther, OutputStream::kStdout, "x"});
  writer_.End({kOther});
  EXPECT_TRUE(writer_.Finish());
  EXPECT_THAT(sink_.lines(), IsEmpty());
}

TEST_F(OutputWriterTest, SaysHowLongItIsHeld) {
  EXPECT_EQ(writer_.HeldFor(Now()), absl::ZeroDuration());
  sink_.SetOpen(false);
  Write("x");
  sink_.AwaitWriter();
  EXPECT_GE(writer_.HeldFor(Now() + absl::Seconds(1)), absl::Seconds(1));
  sink_.SetOpen(true);
  EXPECT_TRUE(writer_.Finish());
  EXPECT_EQ(writer_.HeldFor(Now() + absl::Seconds(1)), absl::ZeroDuration());
}

TEST_F(OutputWriterTest, InAHurryWhatIsHeldIsGivenUp) {
  sink_.SetOpen(false);
  Write("x");
  Write("y");
  sink_.AwaitWriter();
  writer_.HurryUp();
  EXPECT_FALSE(writer_.Finish());
  sink_.SetOpen(true);  // the thread that was left behind ends
  sink_.AwaitLines(1);
  EXPECT_THAT(credits(), IsEmpty());
}

TEST_F(OutputWriterTest, InAHurryWhatIsTakenIsStillWritten) {
  Write("x");
  writer_.HurryUp();
  EXPECT_TRUE(writer_.Finish());
  EXPECT_THAT(sink_.lines(), ElementsAre("7 out x"));
}

}  // namespace
}  // namespace farandole
