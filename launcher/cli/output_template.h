#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace farandole {

// What stands before each line of a worker's output. Its text is copied as it is, except for
//
//   {rank}  {local_rank}  {host}   the worker's place
//   {stream}                       stdout or stderr
//   {gen}                          the generation
//   {time}                         when the line came
//   {{  }}                         a brace
class OutputTemplate {
 public:
  // The original's: "[3]<stdout>:".
  static constexpr char kDefault[] = "[{rank}]<{stream}>:";

  // What the fields are replaced by.
  struct Fields {
    int rank = 0;
    int local_rank = 0;
    int64_t generation = 0;
    absl::string_view host;
    absl::string_view stream;
    absl::string_view time;  // only looked at if uses_time()
  };

  // The default.
  OutputTemplate();

  // Errors: InvalidArgument: a field that there is not, with the nearest; a brace alone; a line break, or longer than
  // 1000 bytes.
  static absl::StatusOr<OutputTemplate> Parse(absl::string_view text);

  std::string Expand(const Fields& fields) const;
  bool uses_time() const;
  // The same with {time} before it, as the original's --prefix-output-with-timestamp has it; itself if it has one.
  OutputTemplate WithTime() const;
  const std::string& text() const { return text_; }

  friend bool operator==(const OutputTemplate& a, const OutputTemplate& b) { return a.text_ == b.text_; }

 private:
  enum class Field { kLiteral, kRank, kLocalRank, kHost, kStream, kGeneration, kTime };
  struct Piece {
    Field field = Field::kLiteral;
    std::string literal = {};
  };
  static absl::StatusOr<Field> FieldOf(absl::string_view name);
  static absl::StatusOr<std::vector<Piece>> PiecesOf(absl::string_view text);

  std::string text_;
  std::vector<Piece> pieces_;
};

}  // namespace farandole
