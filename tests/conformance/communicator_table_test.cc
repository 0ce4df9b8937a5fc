// The table of what can be done with which type over what, in collectives/README.md: it has to be what happens here.
#include <algorithm>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/optional.h"
#include "collectives/core/communicator.h"
#include "collectives/core/types.h"
#include "collectives/reference/reference.h"
#include "gtest/gtest.h"
#include "tests/conformance/communicator_cases.h"
#include "tests/conformance/worlds.h"

namespace farandole::testing {
namespace {

using reference::Bytes;

constexpr Means kColumns[] = {Means::kShm, Means::kTcp, Means::kTwoHosts};
constexpr char kBegin[] = "<!-- what tests/conformance:communicator_table_test has seen -->\n";
constexpr char kEnd[] = "<!-- end -->\n";

struct Row {
  Operation operation;
  ReduceOp op;
  std::string name;
};

std::vector<Row> Rows() {
  std::vector<Row> rows;
  for (Operation operation : {Operation::kAllReduce, Operation::kReduceScatter}) {
    for (ReduceOp op : kReduceOps) {
      rows.push_back({operation, op, absl::StrCat(Name(operation), " ", Name(op))});
    }
  }
  for (Operation operation :
       {Operation::kAllGather, Operation::kAllToAll, Operation::kBroadcast, Operation::kSendReceive}) {
    rows.push_back({operation, ReduceOp::kSum, Name(operation)});
  }
  return rows;
}

// Right or refused by every rank; else why not.
struct Outcome {
  bool right = false;
  std::string trouble;
};

Case CaseOf(const Row& row, DType dtype, int size) {
  Case what = LongCase(row.operation, size, 1);
  what.dtype = dtype;
  what.op = row.op;
  for (int64_t& count : what.counts) count = 65;
  return what;
}

Outcome OutcomeOf(Means means, const Row& row, DType dtype) {
  constexpr int kSize = 3;
  const Case what = CaseOf(row, dtype, kSize);
  const auto world = MakeWorld(means, kSize);
  std::vector<Bytes> outputs(kSize);
  std::vector<absl::Status> statuses(kSize);
  OnAllRanks(kSize, [&](Rank rank) {
    const auto communicator = world->MakeCommunicator(rank);
    auto output = RunCase(*communicator, what, Eventually());
    statuses[rank] = output.status();
    if (output.ok()) outputs[rank] = *std::move(output);
  });
  if (std::all_of(statuses.begin(), statuses.end(), [](const absl::Status& s) { return absl::IsInvalidArgument(s); })) {
    return {};
  }
  for (const absl::Status& status : statuses) {
    if (!status.ok()) return {false, status.ToString()};
  }
  const absl::optional<std::string> mismatch = Mismatch(what, outputs);
  return {!mismatch.has_value(), mismatch.value_or("")};
}

std::string Cell(const Row& row, DType dtype) {
  std::vector<std::string> right;
  for (Means means : kColumns) {
    const Outcome outcome = OutcomeOf(means, row, dtype);
    EXPECT_EQ(outcome.trouble, "") << row.name << " of " << dtype << " over " << means;
    if (outcome.right) right.push_back(Name(means));
  }
  if (right.empty()) return "-";
  return right.size() == std::size(kColumns) ? "all" : absl::StrJoin(right, " ");
}

std::string Table() {
  std::vector<std::string> names;
  for (DType dtype : kDTypes) names.emplace_back(std::string(Name(dtype)));
  std::string table = absl::StrCat("| | ", absl::StrJoin(names, " | "), " |\n| --- |");
  for (size_t i = 0; i < names.size(); ++i) absl::StrAppend(&table, " --- |");
  absl::StrAppend(&table, "\n");
  for (const Row& row : Rows()) {
    std::vector<std::string> cells;
    for (DType dtype : kDTypes) cells.push_back(Cell(row, dtype));
    absl::StrAppend(&table, "| ", row.name, " | ", absl::StrJoin(cells, " | "), " |\n");
  }
  return table;
}

std::string TableInReadme() {
  std::ifstream file("collectives/README.md");
  std::stringstream text;
  text << file.rdbuf();
  const std::string readme = text.str();
  const size_t begin = readme.find(kBegin);
  const size_t end = readme.find(kEnd, begin == std::string::npos ? 0 : begin);
  if (begin == std::string::npos || end == std::string::npos) return "";
  return readme.substr(begin + sizeof kBegin - 1, end - begin - (sizeof kBegin - 1));
}

TEST(TableTest, TheReadmeSaysWhatHappens) {
  const std::string table = Table();
  std::cout << table;
  EXPECT_EQ(TableInReadme(), table) << "put what is printed above between the two comments in collectives/README.md";
}

}  // namespace
}  // namespace farandole::testing
