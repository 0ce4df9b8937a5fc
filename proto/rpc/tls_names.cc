#include "proto/rpc/tls_names.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace farandole {
namespace {

// A name in DNS has at most 253 characters; a job's id has 16.
constexpr size_t kLongestLabel = 200;

std::string Encode(absl::string_view text, absl::string_view also, absl::string_view escape) {
  std::string encoded;
  for (const char c : text) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) || also.find(c) != absl::string_view::npos) {
      encoded += c;
    } else {
      absl::StrAppend(&encoded, escape, absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
    }
  }
  return encoded;
}

}  // namespace

std::string DriverTlsName(const std::string& job) {
  return absl::StrCat("driver.", absl::AsciiStrToLower(Encode(job, "-", "-")).substr(0, kLongestLabel), ".farandole");
}

std::string AgentTlsName(const std::string& job, const std::string& host, Incarnation incarnation) {
  return absl::StrCat("farandole:", Encode(job, "-._", "%"), "/agent/", Encode(host, "-._", "%"), "/",
                      absl::Hex(incarnation.value(), absl::kZeroPad16));
}

}  // namespace farandole
