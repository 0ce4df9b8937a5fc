#include "collectives/engine/timeline/timeline.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "collectives/engine/timeline/clock_offset.h"
#include "collectives/engine/timeline/merge.h"

namespace farandole {
namespace {

using Json = nlohmann::json;

std::string Read(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string PathOf(const std::string& name) { return testing::TempDir() + "/" + name; }

Json Parse(const std::string& text) { return Json::parse(text, nullptr, false); }

Instant At(int64_t micros) { return Instant::FromNanos(micros * 1000); }

void RecordOne(Timeline& timeline) {
  timeline.Record(At(10), {.kind = TraceKind::kNegotiateBegin, .tensor = "allreduce.loss", .name = "ALLREDUCE"});
  timeline.Record(At(11), {.kind = TraceKind::kNegotiateRank, .tensor = "allreduce.loss", .rank = 1});
  timeline.Record(At(12), {.kind = TraceKind::kNegotiateEnd, .tensor = "allreduce.loss"});
  timeline.Record(At(13), {.kind = TraceKind::kCycle});
  timeline.Record(At(14), {.kind = TraceKind::kBegin, .tensor = "allreduce.loss", .name = "ALLREDUCE"});
  timeline.Record(At(15), {.kind = TraceKind::kEnd, .tensor = "allreduce.loss", .dtype = "float32", .shape = "[4]"});
}

constexpr char kGolden[] = R"([
{"name":"process_name","ph":"M","pid":0,"args":{"start_time_since_epoch_in_micros":77}},
{"name":"process_sort_index","ph":"M","pid":0,"args":{"sort_index":0}},
{"name":"process_name","ph":"M","pid":1,"args":{"name":"allreduce.loss"}},
{"name":"process_sort_index","ph":"M","pid":1,"args":{"sort_index":1}},
{"ph":"B","name":"NEGOTIATE_ALLREDUCE","ts":15,"pid":1},
{"ph":"X","name":"1","ts":16,"pid":1,"dur":0},
{"ph":"E","ts":17,"pid":1},
{"ph":"i","name":"CYCLE_START","ts":18,"s":"g"},
{"ph":"B","name":"ALLREDUCE","ts":19,"pid":1},
{"ph":"E","ts":20,"pid":1,"args":{"dtype":"float32","shape":"[4]"}}
])";

TEST(Timeline, WritesTheFormInRankZerosClock) {
  const std::string path = PathOf("golden.json");
  {
    auto timeline =
        Timeline::Start({.path = path, .origin = At(2), .ahead = absl::Microseconds(7), .origin_epoch_micros = 77});
    ASSERT_TRUE(timeline.ok()) << timeline.status();
    EXPECT_TRUE(Parse(Read(path)).is_array());
    RecordOne(**timeline);
  }
  EXPECT_EQ(Read(path), kGolden);
}

TEST(Timeline, NamesTheFileThatCannotBeOpened) {
  const auto timeline = Timeline::Start({.path = "/no/such/folder/t.json"});
  ASSERT_FALSE(timeline.ok());
  EXPECT_NE(timeline.status().message().find("/no/such/folder/t.json"), absl::string_view::npos);
}

TEST(Timeline, CountsWhatItDropsAndStaysWhole) {
  const std::string path = PathOf("load.json");
  constexpr int kThreads = 4, kEach = 20000;
  {
    auto timeline = Timeline::Start({.path = path, .queue_events = 1000, .interval = absl::Milliseconds(1)});
    ASSERT_TRUE(timeline.ok());
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < kEach; ++i) (*timeline)->Record(At(i), {.kind = TraceKind::kCycle});
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  const Json events = Parse(Read(path));
  ASSERT_TRUE(events.is_array());
  int64_t seen = 0, dropped = 0;
  for (const Json& event : events) {
    if (event["name"] == "CYCLE_START") ++seen;
    if (event["name"] == "EVENTS_DROPPED") dropped += event["args"]["count"].get<int64_t>();
  }
  EXPECT_EQ(seen + dropped, kThreads * kEach);
  EXPECT_GT(dropped, 0);
}

// Kills a process that writes without end, each time when its file has grown further.
TEST(Timeline, IsWholeWhenTheProcessIsKilled) {
  const std::string path = PathOf("killed.json");
  for (int64_t kill_at = 1000; kill_at < 60000; kill_at += 3000) {
    ::unlink(path.c_str());
    const pid_t child = ::fork();
    if (child == 0) {
      auto timeline = Timeline::Start({.path = path, .queue_events = 50, .interval = absl::ZeroDuration()});
      if (!timeline.ok()) ::_exit(1);
      while ((*timeline)->status().ok()) RecordOne(**timeline);
      ::_exit(1);
    }
    while (static_cast<int64_t>(Read(path).size()) < kill_at) {
      ASSERT_EQ(::waitpid(child, nullptr, WNOHANG), 0) << "the writer ended by itself";
    }
    ::kill(child, SIGKILL);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    const std::string text = Read(path);
    EXPECT_TRUE(MergeTraces({{0, text}}).ok());
    EXPECT_TRUE(Parse(text).is_array()) << "killed at " << kill_at;
  }
}

TEST(JsonString, EscapesWhatIsNotText) {
  const std::string odd = std::string("a\"\\\n\x01\x7f\xff\xc3\xa9\xed\xa0\x80\xf0\x9f\x98\x80");
  const Json parsed = Parse(JsonString(odd));
  ASSERT_TRUE(parsed.is_string());
  EXPECT_EQ(parsed.get<std::string>(), std::string("a\"\\\n\x01\x7f") + "\xef\xbf\xbd" + "\xc3\xa9" +
                                           "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" + "\xf0\x9f\x98\x80");
}

TEST(MergeTraces, KeepsRanksApartAndReadsACutFile) {
  const std::string whole = kGolden;
  for (size_t cut = 1; cut <= whole.size(); ++cut) {
    const auto merged = MergeTraces({{1, absl::string_view(whole).substr(0, cut)}, {0, whole}});
    ASSERT_TRUE(merged.ok()) << cut << ": " << merged.status();
    ASSERT_TRUE(Parse(*merged).is_array()) << cut;
  }
  const Json events = Parse(*MergeTraces({{1, whole}, {0, whole}}));
  ASSERT_EQ(events.size(), 20u);
  EXPECT_EQ(events[2]["args"]["name"], "rank 0: allreduce.loss");
  EXPECT_EQ(events[12]["args"]["name"], "rank 1: allreduce.loss");
  EXPECT_EQ(events[4]["pid"], 1);
  EXPECT_EQ(events[14]["pid"], 3);
  EXPECT_FALSE(MergeTraces({{0, "{}"}}).ok());
  EXPECT_FALSE(MergeTraces({{0, "[\nx\n{}\n]"}}).ok());
}

TEST(ClockOffset, TheShortestRoundTripCounts) {
  ClockOffset offset;
  EXPECT_EQ(offset.error(), absl::InfiniteDuration());
  offset.Add(At(0), At(1090), At(100));    // 90 there, 10 back: the middle is wrong by 40
  offset.Add(At(200), At(1206), At(210));  // 6 there, 4 back
  offset.Add(At(300), At(1310), At(390));
  offset.Add(At(400), At(0), At(399));
  EXPECT_EQ(offset.offset(), absl::Microseconds(1001));
  EXPECT_EQ(offset.error(), absl::Microseconds(5));
  EXPECT_LE(absl::AbsDuration(offset.offset() - absl::Microseconds(1000)), offset.error());
}

}  // namespace
}  // namespace farandole
