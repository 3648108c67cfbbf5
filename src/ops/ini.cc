#include "ops/ini.h"

#include <optional>

#include <fmt/format.h>

#include "core/ascii.h"
#include "core/utf8.h"

namespace delayq {

namespace {

constexpr size_t kMostEntries = 10'000;
constexpr size_t kMostErrors = 100;
constexpr size_t kLineBytes = size_t{64} << 10;
constexpr size_t kNameBytes = 256;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::string_view kComment = ";#";
constexpr std::string_view kQuotes = "\"'`";

/// Empty, or only a comment.
bool says_nothing(std::string_view text) {
  return text.empty() || kComment.find(text[0]) != std::string_view::npos;
}

/// What keeps a line from being text; empty: nothing does.
std::string_view flaw_of(std::string_view line) {
  while (!line.empty()) {
    const std::optional<char32_t> c = take_code_point(line);
    if (!c) return "this is not UTF-8: save the file so";
    if (is_control(*c) && *c != U'\t') return "there is a control character in this line";
  }
  return {};
}

class Reader {
 public:
  explicit Reader(std::string_view text) : left_(text) {
    if (left_.starts_with(kByteOrderMark)) left_.remove_prefix(kByteOrderMark.size());
  }

  IniText read() && {
    while (!left_.empty() && !is_over_) {
      const size_t end = left_.find('\n');
      std::string_view line = left_.substr(0, end);
      left_.remove_prefix(end == std::string_view::npos ? left_.size() : end + 1);
      if (line.ends_with('\r')) line.remove_suffix(1);
      ++line_;
      read_line(line);
    }
    return std::move(out_);
  }

 private:
  void complain(std::string what) {
    if (is_over_) return;
    is_over_ = out_.errors.size() + 1 == kMostErrors;
    out_.errors.push_back({line_, is_over_ ? "and more: this is not read further" : std::move(what)});
  }

  void read_line(std::string_view line) {
    if (line.size() > kLineBytes)
      return complain(fmt::format("the line has {} bytes: at most {} are allowed", line.size(), kLineBytes));
    if (const std::string_view flaw = flaw_of(line); !flaw.empty()) return complain(std::string(flaw));
    const std::string_view said = trimmed(line);
    if (said.starts_with(';')) out_.has_semicolons = true;
    if (says_nothing(said)) return;
    if (said[0] == '[') return read_section(said);
    read_entry(said);
  }

  void read_section(std::string_view said) {
    const size_t end = said.find(']');
    if (end == std::string_view::npos) return complain("a section needs its ]: write [name]");
    if (!says_nothing(trimmed(said.substr(end + 1)))) return complain("there is something behind the ]");
    const std::string_view name = trimmed(said.substr(1, end - 1));
    if (name.empty() || name.size() > kNameBytes)
      return complain(fmt::format("a section's name has 1 to {} bytes", kNameBytes));
    section_ = name;
  }

  void read_entry(std::string_view said) {
    const size_t sign = said.find_first_of("=:");
    if (sign == std::string_view::npos) return complain("expected key = value, [section] or a ; comment");
    const std::string_view key = trimmed(said.substr(0, sign));
    if (key.empty() || key.size() > kNameBytes)
      return complain(fmt::format("a key has 1 to {} bytes", kNameBytes));
    const std::optional<std::string_view> value = read_value(trimmed(said.substr(sign + 1)));
    if (!value) return;
    if (out_.entries.size() == kMostEntries) {
      complain(fmt::format("there are more than {} keys: this is not read further", kMostEntries));
      is_over_ = true;
      return;
    }
    out_.entries.push_back({section_, std::string(key), std::string(*value), line_});
  }

  std::optional<std::string_view> read_value(std::string_view said) {
    if (!said.empty() && kQuotes.find(said[0]) != std::string_view::npos) {
      const size_t end = said.find(said[0], 1);
      if (end == std::string_view::npos) {
        complain("the value's closing quote is missing");
        return std::nullopt;
      }
      if (!says_nothing(trimmed(said.substr(end + 1)))) {
        complain("there is something behind the value's closing quote");
        return std::nullopt;
      }
      return said.substr(1, end - 1);
    }
    const std::string_view value = trimmed(said.substr(0, said.find_first_of(kComment)));
    if (value.ends_with('\\')) {
      complain("a value that goes on in the next line is not understood: write it in one, or in quotes");
      return std::nullopt;
    }
    return value;
  }

  std::string_view left_;
  IniText out_;
  std::string section_;
  uint32_t line_ = 0;
  bool is_over_ = false;
};

}  // namespace

IniText read_ini(std::string_view text) { return Reader(text).read(); }

}  // namespace delayq
