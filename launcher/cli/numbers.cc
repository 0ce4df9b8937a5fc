#include "launcher/cli/numbers.h"

#include <charconv>
#include <cmath>
#include <cstdlib>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "launcher/cli/quote.h"

namespace farandole {
namespace {

bool IsWhole(absl::string_view text) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == absl::string_view::npos;
}

absl::Status NotA(const Setting& setting, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(setting.origin, " ", Quote(setting.value), " is not a ", what));
}

template <typename Number>
absl::Status TooLittle(const Setting& setting, Number least) {
  return absl::InvalidArgumentError(absl::StrCat(setting.origin, " ", setting.value, ": must be at least ", least));
}

template <typename Number>
absl::Status TooMuch(const Setting& setting, Number most) {
  return absl::InvalidArgumentError(absl::StrCat(setting.origin, " ", setting.value, ": more than ", most));
}

template <size_t kSize>
std::string ToChars(double number, std::chars_format format, char (&buffer)[kSize]) {
  return std::string(buffer, std::to_chars(buffer, buffer + kSize, number, format).ptr);
}

}  // namespace

absl::StatusOr<int64_t> WholeNumber(const Setting& setting, int64_t least, int64_t most) {
  const absl::string_view text = absl::StripAsciiWhitespace(setting.value);
  if (!IsWhole(text)) return NotA(setting, "whole number");
  int64_t number = 0;
  const bool fits = absl::SimpleAtoi(text, &number);
  if (fits ? number < least : text[0] == '-') return TooLittle(setting, least);
  if (!fits || number > most) return TooMuch(setting, most);
  return number;
}

absl::StatusOr<double> RealNumber(const Setting& setting, double least, double most) {
  double number = 0;
  if (!absl::SimpleAtod(setting.value, &number) || !std::isfinite(number)) return NotA(setting, "number");
  if (number < least) return TooLittle(setting, least);
  if (number > most) return TooMuch(setting, most);
  return number;
}

std::string PythonFloat(double number) {
  char buffer[32];
  std::string text = ToChars(number, std::chars_format::scientific, buffer);
  const int exponent = std::atoi(text.c_str() + text.find('e') + 1);
  if (exponent < -4 || exponent >= 16) return text;
  text = ToChars(number, std::chars_format::fixed, buffer);
  return absl::StrContains(text, '.') ? text : absl::StrCat(text, ".0");
}

}  // namespace farandole
