#include "collectives/reference/reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace farandole::reference {
namespace {

// A binary floating-point format: value = mantissa * 2^exponent.
struct Format {
  int mantissa_bits;    // stored
  int exponent_min;     // of the last mantissa bit, of the smallest numbers
  long double largest;  // finite
  long double UnitRoundoff() const { return std::ldexp(1.0L, -(mantissa_bits + 1)); }
  long double Smallest() const { return std::ldexp(1.0L, exponent_min); }
};

absl::optional<Format> FormatOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return Format{10, -24, 65504.0L};
    case DType::kBfloat16:
      return Format{7, -133, std::ldexp(255.0L, 127 - 7)};
    case DType::kFloat32:
      return Format{23, -149, std::numeric_limits<float>::max()};
    case DType::kFloat64:
      return Format{52, -1074, std::numeric_limits<double>::max()};
    case DType::kUint8:
    case DType::kInt8:
    case DType::kUint16:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
    case DType::kBool:
      return absl::nullopt;
  }
  return absl::nullopt;
}

template <typename T>
T Read(const std::byte* element) {
  T value;
  std::memcpy(&value, element, sizeof value);
  return value;
}

template <typename T>
void Write(T value, std::byte* element) {
  std::memcpy(element, &value, sizeof value);
}

// Sign, exponent, mantissa, as the standard's text has it.
long double DecodeHalf(uint16_t bits, int exponent_bits, int mantissa_bits) {
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const long double sign = bits & 0x8000 ? -1.0L : 1.0L;
  const int exponent_max = (1 << exponent_bits) - 1;
  const int bias = exponent_max / 2;
  if (exponent == exponent_max) {
    return mantissa == 0 ? sign * std::numeric_limits<long double>::infinity()
                         : std::numeric_limits<long double>::quiet_NaN();
  }
  if (exponent == 0) return sign * std::ldexp(static_cast<long double>(mantissa), 1 - bias - mantissa_bits);
  return sign * std::ldexp(static_cast<long double>(mantissa + (1 << mantissa_bits)), exponent - bias - mantissa_bits);
}

// Tries the neighbours: positive half-precision numbers are ordered as their bits are, so the nearest is found by
// bisection.
uint16_t EncodeHalf(long double value, int exponent_bits, int mantissa_bits) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const long double magnitude = std::fabs(value);
  const uint16_t infinity = static_cast<uint16_t>(((1 << exponent_bits) - 1) << mantissa_bits);
  if (std::isnan(value)) return infinity | (1 << (mantissa_bits - 1));
  uint16_t below = 0;
  uint16_t above = infinity;
  while (above - below > 1) {
    const uint16_t middle = static_cast<uint16_t>((below + above) / 2);
    (DecodeHalf(middle, exponent_bits, mantissa_bits) <= magnitude ? below : above) = middle;
  }
  const long double low = DecodeHalf(below, exponent_bits, mantissa_bits);
  // What the next number would be if the exponents went on: the border to infinity lies halfway to it.
  const long double step = DecodeHalf(below, exponent_bits, mantissa_bits) -
                           (below == 0 ? 0 : DecodeHalf(below - 1, exponent_bits, mantissa_bits));
  const long double high = above == infinity ? low + step : DecodeHalf(above, exponent_bits, mantissa_bits);
  const bool up = magnitude - low > high - magnitude || (magnitude - low == high - magnitude && (below & 1) != 0);
  return static_cast<uint16_t>((up ? above : below) | sign);
}

// Integers wrap: reduced without a sign in 64 bits, and cut to the type's width by Store.
uint64_t ReadInteger(DType dtype, const std::byte* element) {
  if (dtype == DType::kUint8) return Read<uint8_t>(element);
  if (dtype == DType::kBool) return Read<uint8_t>(element) != 0 ? 1 : 0;
  if (dtype == DType::kInt8) return static_cast<uint64_t>(static_cast<int64_t>(Read<int8_t>(element)));
  if (dtype == DType::kUint16) return Read<uint16_t>(element);
  if (dtype == DType::kInt16) return static_cast<uint64_t>(static_cast<int64_t>(Read<int16_t>(element)));
  if (dtype == DType::kInt32) return static_cast<uint64_t>(static_cast<int64_t>(Read<int32_t>(element)));
  return static_cast<uint64_t>(Read<int64_t>(element));
}

void WriteInteger(DType dtype, uint64_t value, std::byte* element) {
  if (dtype == DType::kUint8) return Write(static_cast<uint8_t>(value), element);
  if (dtype == DType::kBool) return Write(static_cast<uint8_t>(value != 0 ? 1 : 0), element);
  if (dtype == DType::kInt8) return Write(static_cast<int8_t>(value), element);
  if (dtype == DType::kUint16) return Write(static_cast<uint16_t>(value), element);
  if (dtype == DType::kInt16) return Write(static_cast<int16_t>(value), element);
  if (dtype == DType::kInt32) return Write(static_cast<int32_t>(static_cast<uint32_t>(value)), element);
  Write(static_cast<int64_t>(value), element);
}

uint64_t CombineIntegers(ReduceOp op, uint64_t a, uint64_t b) {
  const int64_t x = static_cast<int64_t>(a);
  const int64_t y = static_cast<int64_t>(b);
  switch (op) {
    case ReduceOp::kAverage:
    case ReduceOp::kSum:
      return a + b;
    case ReduceOp::kAdasum:  // works on whole vectors: see Adasum
      break;
    case ReduceOp::kMin:
      return x < y ? a : b;
    case ReduceOp::kMax:
      return x > y ? a : b;
    case ReduceOp::kProduct:
      return a * b;
  }
  return 0;
}

long double CombineReals(ReduceOp op, long double a, long double b) {
  switch (op) {
    case ReduceOp::kAverage:
    case ReduceOp::kSum:
      return a + b;
    case ReduceOp::kAdasum:  // works on whole vectors: see Adasum
      break;
    case ReduceOp::kMin:
      return std::isnan(a) || a < b ? a : b;
    case ReduceOp::kMax:
      return std::isnan(a) || a > b ? a : b;
    case ReduceOp::kProduct:
      return a * b;
  }
  return 0;
}

void ReduceIntegers(const std::vector<const std::byte*>& elements, DType dtype, ReduceOp op, std::byte* out) {
  uint64_t result = ReadInteger(dtype, elements[0]);
  for (size_t rank = 1; rank < elements.size(); ++rank) {
    result = CombineIntegers(op, result, ReadInteger(dtype, elements[rank]));
  }
  WriteInteger(dtype, result, out);
  if (op != ReduceOp::kAverage || elements.size() == 1) return;
  const double sum = static_cast<double>(static_cast<int64_t>(ReadInteger(dtype, out)));
  WriteInteger(dtype, static_cast<uint64_t>(static_cast<int64_t>(sum / static_cast<double>(elements.size()))), out);
}

long double ReduceReals(const std::vector<long double>& values, ReduceOp op) {
  long double result = values[0];
  for (size_t rank = 1; rank < values.size(); ++rank) result = CombineReals(op, result, values[rank]);
  return op == ReduceOp::kAverage ? result / static_cast<long double>(values.size()) : result;
}

// How far from the exact result a correct one may be. Each of n-1 steps (one more for the division) rounds once: sums
// are off by at most that many roundings of the sum of magnitudes, products of themselves; and near zero by the type's
// smallest number. One more step covers (1+u)^n > 1+nu and the oracle's own rounding.
long double Tolerance(const Format& format, ReduceOp op, const std::vector<long double>& values, long double exact) {
  if (op == ReduceOp::kMin || op == ReduceOp::kMax) return 0;
  const long double steps = static_cast<long double>(values.size()) + 1;
  long double magnitude = 0;
  for (long double value : values) magnitude += std::fabs(value);
  if (op == ReduceOp::kAverage) magnitude /= static_cast<long double>(values.size());
  if (op == ReduceOp::kProduct) magnitude = std::fabs(exact);
  return steps * (format.UnitRoundoff() * magnitude + format.Smallest());
}

// Same number, both infinite alike or both NaN; else within the tolerance.
bool Near(long double got, long double want, const Format& format, long double tolerance) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
  if (std::isinf(got)) return std::fabs(want) + tolerance > format.largest && (got > 0) == (want > 0);
  return std::fabs(got - want) <= tolerance;
}

}  // namespace

long double Decode(DType dtype, const std::byte* element) {
  switch (dtype) {
    case DType::kUint8:
      return Read<uint8_t>(element);
    case DType::kInt8:
      return Read<int8_t>(element);
    case DType::kUint16:
      return Read<uint16_t>(element);
    case DType::kInt16:
      return Read<int16_t>(element);
    case DType::kBool:
      return Read<uint8_t>(element) != 0 ? 1 : 0;
    case DType::kInt32:
      return Read<int32_t>(element);
    case DType::kInt64:
      return Read<int64_t>(element);
    case DType::kFloat16:
      return DecodeHalf(Read<uint16_t>(element), 5, 10);
    case DType::kBfloat16:
      return DecodeHalf(Read<uint16_t>(element), 8, 7);
    case DType::kFloat32:
      return Read<float>(element);
    case DType::kFloat64:
      return Read<double>(element);
  }
  return 0;
}

void Encode(DType dtype, long double value, std::byte* element) {
  switch (dtype) {
    case DType::kUint8:
    case DType::kBool:
      return Write(static_cast<uint8_t>(value), element);
    case DType::kInt8:
      return Write(static_cast<int8_t>(value), element);
    case DType::kUint16:
      return Write(static_cast<uint16_t>(value), element);
    case DType::kInt16:
      return Write(static_cast<int16_t>(value), element);
    case DType::kInt32:
      return Write(static_cast<int32_t>(value), element);
    case DType::kInt64:
      return Write(static_cast<int64_t>(value), element);
    case DType::kFloat16:
      return Write(EncodeHalf(value, 5, 10), element);
    case DType::kBfloat16:
      return Write(EncodeHalf(value, 8, 7), element);
    case DType::kFloat32:
      return Write(static_cast<float>(value), element);
    case DType::kFloat64:
      return Write(static_cast<double>(value), element);
  }
}

std::vector<long double> DecodeAll(DType dtype, const Bytes& bytes) {
  std::vector<long double> values;
  for (size_t i = 0; i < bytes.size(); i += SizeOf(dtype)) values.push_back(Decode(dtype, bytes.data() + i));
  return values;
}

Bytes EncodeAll(DType dtype, const std::vector<long double>& values) {
  Bytes bytes(values.size() * SizeOf(dtype));
  for (size_t i = 0; i < values.size(); ++i) Encode(dtype, values[i], bytes.data() + i * SizeOf(dtype));
  return bytes;
}

Bytes AllReduce(const std::vector<Bytes>& inputs, DType dtype, ReduceOp op) {
  Bytes output(inputs[0].size());
  for (size_t at = 0; at < output.size(); at += SizeOf(dtype)) {
    std::vector<const std::byte*> elements;
    for (const Bytes& input : inputs) elements.push_back(input.data() + at);
    if (!FormatOf(dtype).has_value()) {
      ReduceIntegers(elements, dtype, op, output.data() + at);
      continue;
    }
    std::vector<long double> values;
    for (const std::byte* element : elements) values.push_back(Decode(dtype, element));
    Encode(dtype, ReduceReals(values, op), output.data() + at);
  }
  return output;
}

Bytes AllGather(const std::vector<Bytes>& inputs) {
  Bytes output;
  for (const Bytes& input : inputs) output.insert(output.end(), input.begin(), input.end());
  return output;
}

Bytes Broadcast(const std::vector<Bytes>& inputs, Rank root) { return inputs[root]; }

std::vector<Bytes> ReduceScatter(const std::vector<Bytes>& inputs, const std::vector<int64_t>& counts, DType dtype,
                                 ReduceOp op) {
  const Bytes all = AllReduce(inputs, dtype, op);
  std::vector<Bytes> outputs;
  auto begin = all.begin();
  for (int64_t count : counts) {
    const auto end = begin + count * SizeOf(dtype);
    outputs.emplace_back(begin, end);
    begin = end;
  }
  return outputs;
}

std::vector<Bytes> AllToAll(const std::vector<Bytes>& inputs, const std::vector<std::vector<int64_t>>& bytes) {
  std::vector<Bytes> outputs(inputs.size());
  for (size_t from = 0; from < inputs.size(); ++from) {
    auto begin = inputs[from].begin();
    for (size_t to = 0; to < inputs.size(); ++to) {
      outputs[to].insert(outputs[to].end(), begin, begin + bytes[from][to]);
      begin += bytes[from][to];
    }
  }
  return outputs;
}

absl::optional<std::string> AllReduceMismatch(const std::vector<Bytes>& inputs, DType dtype, ReduceOp op,
                                              const Bytes& output) {
  if (output.size() != inputs[0].size()) return absl::StrCat(output.size(), " bytes, not ", inputs[0].size());
  const Bytes integers = FormatOf(dtype).has_value() ? Bytes() : AllReduce(inputs, dtype, op);
  for (size_t at = 0; at < output.size(); at += SizeOf(dtype)) {
    std::vector<long double> values;
    for (const Bytes& input : inputs) values.push_back(Decode(dtype, input.data() + at));
    const long double got = Decode(dtype, output.data() + at);
    long double want = 0;
    long double tolerance = 0;
    bool near = false;
    if (const auto format = FormatOf(dtype)) {
      want = ReduceReals(values, op);
      tolerance = Tolerance(*format, op, values, want);
      near = Near(got, want, *format, tolerance);
    } else {
      want = Decode(dtype, integers.data() + at);
      near = std::memcmp(&output[at], &integers[at], static_cast<size_t>(SizeOf(dtype))) == 0;
    }
    if (!near) {
      return absl::StrCat("element ", at / SizeOf(dtype), " of ", output.size() / SizeOf(dtype), " is ",
                          static_cast<double>(got), ", not ", static_cast<double>(want), " within ",
                          static_cast<double>(tolerance));
    }
  }
  return absl::nullopt;
}

namespace {

// A vector with how far from it a correct one may be, element by element.
struct Bounded {
  std::vector<long double> values;
  std::vector<long double> errors;
};

long double Dot(const std::vector<long double>& a, const std::vector<long double>& b) {
  long double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

struct Coefficient {
  long double value = 1;
  long double error = 0;
};

// 1 - ab / (2 aa), where ab may be wrong by ab_error and the vector behind aa by error_norm.
Coefficient CoefficientOf(long double ab, long double ab_error, long double aa, long double error_norm,
                          long double dot_roundoff) {
  if (aa < std::sqrt(static_cast<long double>(std::numeric_limits<double>::min()))) return {};
  const long double aa_error = (2 * std::sqrt(aa) + error_norm) * error_norm + dot_roundoff * aa;
  if (aa_error >= aa) return {1, std::numeric_limits<long double>::infinity()};
  return {1 - ab / (2 * aa), (ab_error + std::fabs(ab) * aa_error / aa) / (2 * (aa - aa_error))};
}

// Rounds three times per element: two products and their sum; coefficients are rounded once.
Bounded CombineByAdasum(const Bounded& a, const Bounded& b, const Format& format) {
  const long double ab = Dot(a.values, b.values);
  const long double aa = Dot(a.values, a.values);
  const long double bb = Dot(b.values, b.values);
  const long double a_error = std::sqrt(Dot(a.errors, a.errors));
  const long double b_error = std::sqrt(Dot(b.errors, b.errors));
  const long double dot_roundoff =
      static_cast<long double>(a.values.size() + 2) * std::numeric_limits<double>::epsilon();
  const long double norms = std::sqrt(aa) * std::sqrt(bb);
  const long double ab_error =
      std::sqrt(aa) * b_error + std::sqrt(bb) * a_error + a_error * b_error + dot_roundoff * norms;
  const Coefficient ca = CoefficientOf(ab, ab_error, aa, a_error, dot_roundoff);
  const Coefficient cb = CoefficientOf(ab, ab_error, bb, b_error, dot_roundoff);
  Bounded sum;
  for (size_t i = 0; i < a.values.size(); ++i) {
    const long double x = ca.value * a.values[i];
    const long double y = cb.value * b.values[i];
    const long double inherited = (std::fabs(ca.value) + ca.error) * a.errors[i] +
                                  (std::fabs(cb.value) + cb.error) * b.errors[i] + ca.error * std::fabs(a.values[i]) +
                                  cb.error * std::fabs(b.values[i]);
    sum.values.push_back(x + y);
    sum.errors.push_back(inherited + 4 * format.UnitRoundoff() * (std::fabs(x) + std::fabs(y) + inherited) +
                         2 * format.Smallest());
  }
  return sum;
}

// The tree of one piece over all ranks.
Bounded AdasumTree(std::vector<Bounded> nodes, const Format& format) {
  size_t power = 1;
  while (2 * power <= nodes.size()) power *= 2;
  for (size_t rank = power; rank < nodes.size(); ++rank) {
    nodes[rank - power] = CombineByAdasum(nodes[rank - power], nodes[rank], format);
  }
  for (size_t distance = 1; distance < power; distance *= 2) {
    for (size_t rank = 0; rank < power; rank += 2 * distance) {
      nodes[rank] = CombineByAdasum(nodes[rank], nodes[rank + distance], format);
    }
  }
  return nodes[0];
}

Bounded AdasumOfPieces(const std::vector<Bytes>& inputs, const std::vector<int64_t>& pieces, DType dtype) {
  Bounded all;
  int64_t begin = 0;
  for (int64_t piece : pieces) {
    std::vector<Bounded> nodes;
    for (const Bytes& input : inputs) {
      const auto from = input.begin() + begin * SizeOf(dtype);
      const Bytes part(from, from + piece * SizeOf(dtype));
      nodes.push_back({DecodeAll(dtype, part), std::vector<long double>(static_cast<size_t>(piece), 0)});
    }
    const Bounded result = AdasumTree(std::move(nodes), *FormatOf(dtype));
    all.values.insert(all.values.end(), result.values.begin(), result.values.end());
    all.errors.insert(all.errors.end(), result.errors.begin(), result.errors.end());
    begin += piece;
  }
  return all;
}

}  // namespace

std::vector<long double> Adasum(const std::vector<Bytes>& inputs, const std::vector<int64_t>& pieces, DType dtype) {
  return AdasumOfPieces(inputs, pieces, dtype).values;
}

absl::optional<std::string> AdasumMismatch(const std::vector<Bytes>& inputs, const std::vector<int64_t>& pieces,
                                           DType dtype, const Bytes& output) {
  if (output.size() != inputs[0].size()) return absl::StrCat(output.size(), " bytes, not ", inputs[0].size());
  const Bounded want = AdasumOfPieces(inputs, pieces, dtype);
  const std::vector<long double> got = DecodeAll(dtype, output);
  for (size_t i = 0; i < got.size(); ++i) {
    if (Near(got[i], want.values[i], *FormatOf(dtype), want.errors[i])) continue;
    return absl::StrCat("element ", i, " of ", got.size(), " is ", static_cast<double>(got[i]), ", not ",
                        static_cast<double>(want.values[i]), " within ", static_cast<double>(want.errors[i]));
  }
  return absl::nullopt;
}

}  // namespace farandole::reference
