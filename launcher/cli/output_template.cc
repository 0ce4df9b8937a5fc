#include "launcher/cli/output_template.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "launcher/cli/options.h"
#include "launcher/cli/quote.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

constexpr size_t kLongest = 1000;
constexpr char kFields[] = "{rank} {local_rank} {host} {stream} {gen} {time}";
constexpr absl::string_view kNames[] = {"rank", "local_rank", "host", "stream", "gen", "time"};

}  // namespace

absl::StatusOr<OutputTemplate::Field> OutputTemplate::FieldOf(absl::string_view name) {
  constexpr Field kByName[] = {Field::kRank,   Field::kLocalRank,  Field::kHost,
                               Field::kStream, Field::kGeneration, Field::kTime};
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (kNames[i] == name) return kByName[i];
  }
  const std::string nearest = NearestWord(name, kNames);
  const std::string hint =
      nearest.empty() ? absl::StrCat("there are ", kFields) : absl::StrCat("did you mean {", nearest, "}?");
  return absl::InvalidArgumentError(
      absl::StrCat("there is no field ", Quote(absl::StrCat("{", name, "}")), "; ", hint));
}

absl::StatusOr<std::vector<OutputTemplate::Piece>> OutputTemplate::PiecesOf(absl::string_view text) {
  std::vector<Piece> pieces(1);
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const bool is_brace = c == '{' || c == '}';
    const bool is_twice = is_brace && at + 1 < text.size() && text[at + 1] == c;
    if (!is_brace || is_twice) {
      pieces.back().literal.push_back(c);
      at += is_twice ? 1 : 0;
      continue;
    }
    const size_t close = text.find('}', at);
    if (c == '}' || close == absl::string_view::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("a '", text.substr(at, 1), "' alone; write it twice for a brace. Fields are ", kFields));
    }
    ASSIGN_OR_RETURN(const Field field, FieldOf(text.substr(at + 1, close - at - 1)));
    pieces.push_back({field});
    pieces.emplace_back();
    at = close;
  }
  return pieces;
}

OutputTemplate::OutputTemplate() : text_(kDefault), pieces_(*PiecesOf(kDefault)) {}

absl::StatusOr<OutputTemplate> OutputTemplate::Parse(absl::string_view text) {
  if (text.size() > kLongest) return absl::InvalidArgumentError(absl::StrCat("longer than ", kLongest, " bytes"));
  if (text.find_first_of("\r\n") != absl::string_view::npos) {
    return absl::InvalidArgumentError("a line break would make two lines of one");
  }
  OutputTemplate made;
  made.text_ = std::string(text);
  ASSIGN_OR_RETURN(made.pieces_, PiecesOf(text));
  return made;
}

std::string OutputTemplate::Expand(const Fields& fields) const {
  std::string out;
  for (const Piece& piece : pieces_) {
    switch (piece.field) {
      case Field::kLiteral:
        out += piece.literal;
        break;
      case Field::kRank:
        absl::StrAppend(&out, fields.rank);
        break;
      case Field::kLocalRank:
        absl::StrAppend(&out, fields.local_rank);
        break;
      case Field::kHost:
        absl::StrAppend(&out, fields.host);
        break;
      case Field::kStream:
        absl::StrAppend(&out, fields.stream);
        break;
      case Field::kGeneration:
        absl::StrAppend(&out, fields.generation);
        break;
      case Field::kTime:
        absl::StrAppend(&out, fields.time);
        break;
    }
  }
  return out;
}

bool OutputTemplate::uses_time() const {
  for (const Piece& piece : pieces_) {
    if (piece.field == Field::kTime) return true;
  }
  return false;
}

OutputTemplate OutputTemplate::WithTime() const {
  if (uses_time()) return *this;
  OutputTemplate made = *this;
  made.text_ = absl::StrCat("{time}", text_);
  made.pieces_.insert(made.pieces_.begin(), {Field::kTime});
  return made;
}

}  // namespace farandole
