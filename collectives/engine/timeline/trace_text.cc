#include "collectives/engine/timeline/trace_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace farandole {
namespace {

// Bytes of the UTF-8 character that `text` begins with; 0 if it begins with none.
size_t Utf8Length(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const size_t length = lead < 0x80                   ? 1
                        : lead >= 0xc2 && lead < 0xe0 ? 2
                        : lead >= 0xe0 && lead < 0xf0 ? 3
                        : lead >= 0xf0 && lead < 0xf5 ? 4
                                                      : 0;
  if (length == 0 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Too long a form, a surrogate, or beyond U+10FFFF.
  if (lead == 0xe0 && byte(1) < 0xa0) return 0;
  if (lead == 0xed && byte(1) >= 0xa0) return 0;
  if (lead == 0xf0 && byte(1) < 0x90) return 0;
  if (lead == 0xf4 && byte(1) >= 0x90) return 0;
  return length;
}

}  // namespace

std::string JsonString(absl::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    const unsigned char c = static_cast<unsigned char>(text[0]);
    if (length == 0) {
      out += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      absl::StrAppend(&out, "\\", text.substr(0, 1));
    } else if (c < 0x20 || c == 0x7f) {
      absl::StrAppendFormat(&out, "\\u%04x", static_cast<unsigned>(c));
    } else {
      absl::StrAppend(&out, text.substr(0, length));
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out + "\"";
}

void TraceText::AppendHeader(int64_t epoch_micros, std::string* out) {
  absl::StrAppend(out, R"({"name":"process_name","ph":"M","pid":0,"args":{"start_time_since_epoch_in_micros":)",
                  epoch_micros, "}},\n", R"({"name":"process_sort_index","ph":"M","pid":0,"args":{"sort_index":0}})");
}

int TraceText::PidOf(absl::string_view tensor, std::string* out) {
  const auto known = pids_.find(tensor);
  if (known != pids_.end()) return known->second;
  const int pid = static_cast<int>(pids_.size()) + 1;
  pids_.emplace(std::string(tensor), pid);
  absl::StrAppend(out, ",\n", R"({"name":"process_name","ph":"M","pid":)", pid, R"(,"args":{"name":)",
                  JsonString(tensor), "}},\n", R"({"name":"process_sort_index","ph":"M","pid":)", pid,
                  R"(,"args":{"sort_index":)", pid, "}}");
  return pid;
}

void TraceText::Append(const TraceEvent& event, std::string* out) {
  if (event.kind == TraceKind::kCycle) {
    absl::StrAppend(out, ",\n", R"({"ph":"i","name":"CYCLE_START","ts":)", event.micros, R"(,"s":"g"})");
    return;
  }
  const int pid = PidOf(event.tensor, out);
  const std::string where = absl::StrCat(R"(,"ts":)", event.micros, R"(,"pid":)", pid);
  switch (event.kind) {
    case TraceKind::kNegotiateBegin:
      absl::StrAppend(out, ",\n", R"({"ph":"B","name":)", JsonString(absl::StrCat("NEGOTIATE_", event.name)), where);
      break;
    case TraceKind::kNegotiateRank:
      absl::StrAppend(out, ",\n", R"({"ph":"X","name":")", event.rank, "\"", where, R"(,"dur":0)");
      break;
    case TraceKind::kBegin:
      absl::StrAppend(out, ",\n", R"({"ph":"B","name":)", JsonString(event.name), where);
      break;
    default:
      absl::StrAppend(out, ",\n", R"({"ph":"E")", where);
      if (!event.dtype.empty()) {
        absl::StrAppend(out, R"(,"args":{"dtype":)", JsonString(event.dtype), R"(,"shape":)", JsonString(event.shape),
                        "}");
      }
  }
  out->push_back('}');
}

void TraceText::AppendDropped(int64_t count, int64_t micros, std::string* out) {
  absl::StrAppend(out, ",\n", R"({"ph":"i","name":"EVENTS_DROPPED","ts":)", micros, R"(,"s":"g","args":{"count":)",
                  count, "}}");
}

}  // namespace farandole
