#include "launcher/exec/output_formatter.h"

#include "absl/strings/str_cat.h"

namespace farandole {
namespace {

constexpr absl::string_view kEraseLine = "\r\x1b[K";

}  // namespace

std::string OutputStamp(absl::Time at, absl::TimeZone zone) {
  return absl::FormatTime("%a %b %e %H:%M:%S %Y", at, zone);
}

void AppendPrefixed(absl::string_view prefix, absl::string_view data, bool* inside_line, std::string* text) {
  while (!data.empty()) {
    size_t end = data.find_first_of("\n\r");
    const bool ended = end != absl::string_view::npos;
    if (ended && data.substr(end, 2) == "\r\n") ++end;
    const absl::string_view piece = ended ? data.substr(0, end + 1) : data;
    absl::StrAppend(text, *inside_line ? "" : prefix, piece);
    *inside_line = !ended;
    data.remove_prefix(piece.size());
  }
}

std::string OutputFormatter::Output(const WorkerId& worker, OutputStream stream, absl::string_view prefix,
                                    absl::string_view data) {
  if (data.empty()) return "";
  Surface& surface = SurfaceOf(stream);
  std::string text;
  if (surface.progress_shown) text += std::string(kEraseLine);
  surface.progress_shown = false;
  const Writer writer(worker, stream);
  bool inside_line = surface.inside_line_of == writer;
  if (surface.inside_line_of && !inside_line) text += '\n';
  AppendPrefixed(prefix, data, &inside_line, &text);
  surface.inside_line_of = inside_line ? absl::make_optional(writer) : absl::nullopt;
  return text;
}

std::string OutputFormatter::Note(absl::string_view lines) {
  Surface& surface = SurfaceOf(OutputStream::kStderr);
  std::string text = absl::StrCat(surface.progress_shown ? kEraseLine : "", surface.inside_line_of ? "\n" : "", lines);
  surface = Surface();
  return text;
}

std::string OutputFormatter::Progress(absl::string_view text) {
  Surface& surface = SurfaceOf(OutputStream::kStderr);
  const bool erase = surface.progress_shown;
  surface.progress_shown = !text.empty() && !surface.inside_line_of;
  return absl::StrCat(erase ? kEraseLine : "", surface.progress_shown ? text : "");
}

}  // namespace farandole
