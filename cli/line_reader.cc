#include "cli/line_reader.h"

#include <istream>

#include <fmt/format.h>

namespace delayq::cli {

Result<bool> LineReader::next(std::string& line) {
  line.clear();
  std::streambuf* const text = in_.rdbuf();
  using Traits = std::istream::traits_type;
  int c = text->sbumpc();
  if (Traits::eq_int_type(c, Traits::eof())) return false;
  ++number_;
  while (!Traits::eq_int_type(c, Traits::eof())) {
    ++bytes_;
    if (c == '\n') break;
    if (line.size() == most_) {
      return Error{ErrorCode::kTooLarge, {}, fmt::format("the line has more than {} bytes", most_)};
    }
    line += Traits::to_char_type(c);
    c = text->sbumpc();
  }
  if (!line.empty() && line.back() == '\r') line.pop_back();
  return true;
}

}  // namespace delayq::cli
