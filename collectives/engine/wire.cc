#include "collectives/engine/wire.h"

#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace farandole {
namespace {

static_assert(std::endian::native == std::endian::little, "the wire is little-endian and written by memcpy");

constexpr uint8_t kVersion = 3;
constexpr uint8_t kRequestList = 1;
constexpr uint8_t kResponseList = 2;

class Writer {
 public:
  template <typename T>
  void Number(T value) {
    static_assert(std::is_arithmetic_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void Text(absl::string_view text) {
    Number(uint64_t{text.size()});
    bytes_.append(text.data(), text.size());
  }
  void Numbers(const std::vector<int64_t>& numbers) {
    Number(uint64_t{numbers.size()});
    for (int64_t number : numbers) Number(number);
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Reads until the first error, which stays; after it every read gives zero values.
class Reader {
 public:
  explicit Reader(absl::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  T Number(absl::string_view field) {
    T value{};
    if (bytes_.size() < sizeof value) {
      Fail(field, "is cut short");
    } else {
      std::memcpy(&value, bytes_.data(), sizeof value);
      bytes_.remove_prefix(sizeof value);
    }
    return value;
  }

  // How many elements follow, each of at least `bytes_min` bytes.
  uint64_t Length(absl::string_view field, size_t bytes_min) {
    const auto length = Number<uint64_t>(field);
    if (length > bytes_.size() / bytes_min) {
      Fail(field, "claims more than there is");
      return 0;
    }
    return length;
  }

  std::string Text(absl::string_view field) {
    const uint64_t length = Length(field, 1);
    std::string text(bytes_.substr(0, length));
    bytes_.remove_prefix(length);
    return text;
  }

  std::vector<int64_t> Numbers(absl::string_view field) {
    std::vector<int64_t> numbers(Length(field, sizeof(int64_t)));
    for (int64_t& number : numbers) number = Number<int64_t>(field);
    return numbers;
  }

  template <typename T, typename Parse>
  T Known(absl::string_view field, Parse parse) {
    const auto number = Number<uint8_t>(field);
    const auto value = parse(number);
    if (!value.has_value()) Fail(field, absl::StrCat("has the unknown value ", number));
    return value.value_or(T{});
  }

  void Fail(absl::string_view field, absl::string_view what) {
    if (status_.ok()) status_ = absl::InvalidArgumentError(absl::StrCat("control message: ", field, " ", what));
    bytes_ = {};
  }

  absl::Status Header(uint8_t kind) {
    if (Number<uint8_t>("version") != kVersion) Fail("version", "is not ours: all ranks need one version of Farandole");
    if (Number<uint8_t>("kind") != kind) Fail("kind", "is another one than expected");
    return status_;
  }

  absl::Status Finish() {
    if (!bytes_.empty()) Fail("the end", "has bytes left over");
    return status_;
  }

  bool ok() const { return status_.ok(); }

 private:
  absl::string_view bytes_;
  absl::Status status_;
};

void Write(Writer& to, const Announcement& from) {
  to.Number(static_cast<uint8_t>(from.kind));
  to.Text(from.name);
  to.Number(static_cast<uint8_t>(from.dtype));
  to.Numbers(from.shape);
  to.Number(static_cast<uint8_t>(from.op));
  to.Number(static_cast<int32_t>(from.root));
  to.Number(from.prescale);
  to.Number(from.postscale);
  to.Number(from.priority);
  to.Number(from.group);
  to.Number(from.group_size);
}

Announcement ReadAnnouncement(Reader& from) {
  Announcement to;
  to.kind = from.Known<OperationKind>("operation", OperationKindFromNumber);
  to.name = from.Text("name");
  to.dtype = from.Known<DType>("type", DTypeFromNumber);
  to.shape = from.Numbers("shape");
  to.op = from.Known<ReduceOp>("reduction", ReduceOpFromNumber);
  to.root = from.Number<int32_t>("root");
  to.prescale = from.Number<double>("prescale");
  to.postscale = from.Number<double>("postscale");
  to.priority = from.Number<int32_t>("priority");
  to.group = from.Number<uint64_t>("group");
  to.group_size = from.Number<uint32_t>("group size");
  if (from.ok() && !ElementCount(to.shape, to.dtype).has_value()) from.Fail("shape", "is impossible");
  if (from.ok() && to.group_size == 0) from.Fail("group size", "is zero");
  return to;
}

void Write(Writer& to, const Response& from) {
  to.Number(from.sequence);
  to.Number(static_cast<uint8_t>(from.kind));
  to.Number(static_cast<uint8_t>(from.dtype));
  to.Number(static_cast<uint8_t>(from.op));
  to.Number(static_cast<int32_t>(from.root));
  to.Number(from.prescale);
  to.Number(from.postscale);
  to.Number(uint64_t{from.names.size()});
  for (const std::string& name : from.names) to.Text(name);
  to.Numbers(from.first_dims);
  to.Numbers(from.joined);
  to.Number(uint64_t{from.shapes.size()});
  for (const std::vector<int64_t>& shape : from.shapes) to.Numbers(shape);
  to.Text(from.refusal);
  to.Numbers(from.refused);
}

Response ReadResponse(Reader& from) {
  Response to;
  to.sequence = from.Number<uint64_t>("sequence");
  to.kind = from.Known<OperationKind>("operation", OperationKindFromNumber);
  to.dtype = from.Known<DType>("type", DTypeFromNumber);
  to.op = from.Known<ReduceOp>("reduction", ReduceOpFromNumber);
  to.root = from.Number<int32_t>("root");
  to.prescale = from.Number<double>("prescale");
  to.postscale = from.Number<double>("postscale");
  to.names.resize(from.Length("names", sizeof(uint64_t)));
  for (std::string& name : to.names) name = from.Text("names");
  to.first_dims = from.Numbers("first dimensions");
  to.joined = from.Numbers("joined ranks");
  to.shapes.resize(from.Length("shapes", sizeof(uint64_t)));
  for (std::vector<int64_t>& shape : to.shapes) shape = from.Numbers("shapes");
  to.refusal = from.Text("refusal");
  to.refused = from.Numbers("refused ranks");
  if (from.ok() && to.names.empty()) from.Fail("names", "is empty");
  if (from.ok() && to.shapes.size() != (to.joined.empty() ? 0 : to.names.size()))
    from.Fail("shapes", "do not fit the names");
  for (const std::vector<int64_t>& shape : to.shapes) {
    if (from.ok() && !ElementCount(shape, to.dtype).has_value()) from.Fail("shapes", "has an impossible one");
  }
  return to;
}

// The shortest that one of them can be, with every string and list empty: what bounds the lengths that are believed.
template <typename T>
size_t BytesMin() {
  static const size_t bytes = [] {
    Writer writer;
    Write(writer, T());
    return writer.Take().size();
  }();
  return bytes;
}

}  // namespace

std::string Encode(const RequestList& list) {
  Writer writer;
  writer.Number(kVersion);
  writer.Number(kRequestList);
  writer.Number(static_cast<uint8_t>(list.leaving));
  writer.Text(list.failure);
  writer.Number(uint64_t{list.requests.size()});
  for (const Announcement& request : list.requests) Write(writer, request);
  return writer.Take();
}

std::string Encode(const ResponseList& list) {
  Writer writer;
  writer.Number(kVersion);
  writer.Number(kResponseList);
  writer.Number(static_cast<uint8_t>(list.closed));
  writer.Text(list.closed_reason);
  writer.Number(uint64_t{list.responses.size()});
  for (const Response& response : list.responses) Write(writer, response);
  return writer.Take();
}

absl::StatusOr<RequestList> DecodeRequestList(absl::string_view bytes) {
  Reader reader(bytes);
  if (absl::Status status = reader.Header(kRequestList); !status.ok()) return status;
  RequestList list;
  list.leaving = reader.Number<uint8_t>("leaving") != 0;
  list.failure = reader.Text("failure");
  const uint64_t count = reader.Length("requests", BytesMin<Announcement>());
  for (uint64_t i = 0; i < count && reader.ok(); ++i) list.requests.push_back(ReadAnnouncement(reader));
  if (absl::Status status = reader.Finish(); !status.ok()) return status;
  return list;
}

absl::StatusOr<ResponseList> DecodeResponseList(absl::string_view bytes) {
  Reader reader(bytes);
  if (absl::Status status = reader.Header(kResponseList); !status.ok()) return status;
  ResponseList list;
  const auto closed = reader.Number<uint8_t>("closed");
  if (closed > static_cast<uint8_t>(absl::StatusCode::kUnauthenticated)) reader.Fail("closed", "is no status");
  list.closed = static_cast<absl::StatusCode>(closed);
  list.closed_reason = reader.Text("reason");
  const uint64_t count = reader.Length("responses", BytesMin<Response>());
  for (uint64_t i = 0; i < count && reader.ok(); ++i) list.responses.push_back(ReadResponse(reader));
  if (absl::Status status = reader.Finish(); !status.ok()) return status;
  return list;
}

}  // namespace farandole
