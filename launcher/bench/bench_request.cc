#include "launcher/bench/bench_request.h"

#include <map>
#include <memory>
#include <utility>

#include "CLI/App.hpp"
#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

constexpr char kUsage[] = "usage: farandole bench OP [--np N] [--bytes LIST] [OPTIONS]\n";
constexpr int kNpMax = 1024;
constexpr int64_t kBytesMax = int64_t{1} << 40;
constexpr int64_t kTensorsMax = 100'000;
constexpr char kDefaultBytes[] = "4,64K,1M,16M";

constexpr char kFooter[] = R"(OP is allreduce, allgather, broadcast, alltoall, reducescatter or barrier.

Examples:
  # an allreduce of three sizes between two processes, through shared memory
  farandole bench allreduce --np 2 --bytes 4,1M,64M

  # the same over TCP, with names and negotiation, for a program to read
  farandole bench allreduce --np 2 --bytes 4,1M,64M --transport tcp --engine --json

Bytes are those of one operation at one rank: the tensor; of allgather the result.
The processes run on this machine; nothing but the collectives is measured.)";

template <typename T>
std::map<std::string, T> ByName(absl::Span<const T> values) {
  std::map<std::string, T> names;
  for (T value : values) names.emplace(std::string(Name(value)), value);
  return names;
}

// "64K" is 65536.
absl::StatusOr<int64_t> ParseBytes(absl::string_view text) {
  absl::string_view digits = absl::StripAsciiWhitespace(text);
  int shift = 0;
  constexpr absl::string_view kUnits = "KMG";
  if (!digits.empty() && kUnits.find(absl::ascii_toupper(digits.back())) != absl::string_view::npos) {
    shift = 10 * (static_cast<int>(kUnits.find(absl::ascii_toupper(digits.back()))) + 1);
    digits.remove_suffix(1);
  }
  int64_t number = 0;
  if (!absl::SimpleAtoi(digits, &number) || number < 0 || number > (kBytesMax >> shift)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--bytes: \"", text, "\" is no size: a number from 0 to 1024G, with K, M or G if you like"));
  }
  return number << shift;
}

absl::StatusOr<std::vector<int64_t>> ParseByteList(const std::string& text) {
  std::vector<int64_t> list;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    ASSIGN_OR_RETURN(const int64_t bytes, ParseBytes(part));
    list.push_back(bytes);
  }
  return list;
}

// What only several options together show.
absl::Status Check(const BenchRequest& request) {
  if (request.tensors > 1 && !request.engine) {
    return absl::InvalidArgumentError("--tensors asks for several at once, which only the engine takes: add --engine");
  }
  if (request.engine && request.op != BenchOp::kAllReduce) {
    return absl::InvalidArgumentError("--engine: only allreduce is measured through the engine");
  }
  if (!Combines(request.dtype, ReduceOp::kSum)) {
    return absl::InvalidArgumentError("--dtype: this type has no sum");
  }
  return absl::OkStatus();
}

BenchCommandLine Refuse(absl::string_view why) {
  BenchCommandLine line;
  line.error = true;
  line.text = absl::StrCat("farandole bench: ", why, "\n", kUsage);
  return line;
}

}  // namespace

absl::string_view Name(BenchOp op) {
  switch (op) {
    case BenchOp::kAllReduce:
      return "allreduce";
    case BenchOp::kAllGather:
      return "allgather";
    case BenchOp::kBroadcast:
      return "broadcast";
    case BenchOp::kAllToAll:
      return "alltoall";
    case BenchOp::kReduceScatter:
      return "reducescatter";
    case BenchOp::kBarrier:
      return "barrier";
  }
  return "unknown";
}

BenchCommandLine ParseBenchCommandLine(absl::Span<const std::string> arguments) {
  BenchCommandLine line;
  BenchRequest& request = line.request;
  CLI::App app("Measures the collectives between processes on this machine.", "farandole bench");
  app.footer(kFooter);
  std::string bytes = kDefaultBytes;
  const auto ops = ByName(absl::MakeConstSpan(kBenchOps));
  const auto dtypes = ByName(absl::MakeConstSpan(kDTypes));
  const auto algorithms = ByName(absl::MakeConstSpan(kAlgorithms));
  std::string op, dtype = "float32", algorithm = "auto";
  app.add_option("OP", op, "what to measure")->required()->check(CLI::IsMember(ops));
  app.add_option("--np", request.np, "processes")->check(CLI::Range(1, kNpMax))->capture_default_str();
  app.add_option("--bytes", bytes, "sizes, such as 4,64K,1M")->capture_default_str();
  app.add_option("--transport", request.transport, "shm or tcp")
      ->check(CLI::IsMember(std::vector<std::string>{"shm", "tcp"}))
      ->capture_default_str();
  app.add_option("--dtype", dtype, "of the elements")->check(CLI::IsMember(dtypes))->capture_default_str();
  app.add_option("--algorithm", algorithm, "of allreduce and allgather")
      ->check(CLI::IsMember(algorithms))
      ->capture_default_str();
  app.add_flag("--engine", request.engine, "through the engine: named, negotiated, cached");
  app.add_option("--tensors", request.tensors, "so many at once, with --engine")
      ->check(CLI::Range(int64_t{1}, kTensorsMax))
      ->capture_default_str();
  app.add_option("--seconds", request.seconds, "for each size, about")
      ->check(CLI::Range(0.001, 3600.0))
      ->capture_default_str();
  app.add_flag("--json", request.json, "an object a line");
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    line.text = app.help();
    return line;
  } catch (const CLI::ParseError& error) {
    return Refuse(error.what());
  }
  absl::StatusOr<std::vector<int64_t>> sizes = ParseByteList(bytes);
  if (!sizes.ok()) return Refuse(sizes.status().message());
  request.op = ops.at(op);
  request.dtype = dtypes.at(dtype);
  request.algorithm = algorithms.at(algorithm);
  request.bytes = request.op == BenchOp::kBarrier ? std::vector<int64_t>{0} : *std::move(sizes);
  if (absl::Status status = Check(request); !status.ok()) return Refuse(status.message());
  line.run = true;
  return line;
}

}  // namespace farandole
