#include "ops/served_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/utf8.h"
#include "json/writer.h"

namespace delayq {

namespace {

/// Of a path that a client made up; names of topics and ids are shorter.
constexpr size_t kMostOfTarget = 1'024;

bool is_plain(char c) { return c > ' ' && c < '\x7f' && c != '\\'; }

/// Of a text that is UTF-8: whether it has one of U+0080 to U+009F, which some terminals obey.
bool has_late_control(std::string_view text) {
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] == '\xc2' && static_cast<unsigned char>(text[i + 1]) < 0xa0) return true;
  }
  return false;
}

/// What would end a word, or mean something to a terminal, is written as \xNN.
void append_escaped(std::string& out, std::string_view text) {
  const bool is_right = is_utf8(text) && !has_late_control(text);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_plain(c) || (byte >= 0x80 && is_right)) {
      out += c;
    } else {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", byte);
    }
  }
}

void append_word(std::string& out, std::string_view text) {
  if (text.empty()) {
    out += '-';
  } else if (std::all_of(text.begin(), text.end(), is_plain)) {
    out += text;
  } else {
    append_escaped(out, text);
  }
}

void append_number(std::string& out, uint64_t number) {
  const fmt::format_int digits(number);
  out.append(digits.data(), digits.size());
}

std::string_view shortened(std::string_view target) { return target.substr(0, kMostOfTarget); }

void append_text(std::string& out, const Served& served, std::string_view time) {
  out += time;
  append_who_and_what(out, served);
  out += ' ';
  append_number(out, static_cast<uint64_t>(served.status));
  out += ' ';
  append_word(out, served.code);
  for (const uint64_t number :
       {served.bytes_in, served.bytes_out, static_cast<uint64_t>(served.took.count())}) {
    out += ' ';
    append_number(out, number);
  }
  out += "us";
}

void append_json(std::string& out, const Served& served, std::string_view time) {
  json::Writer json(out);
  json.begin_object()
      .key("time")
      .text(time)
      .key("protocol")
      .text(served.protocol)
      .key("peer")
      .text(served.peer);
  if (!served.token.empty()) json.key("token").text(served.token);
  json.key("verb").text(served.verb).key("target").text(shortened(served.target));
  json.key("status").number(static_cast<uint64_t>(served.status));
  if (!served.code.empty()) json.key("code").text(served.code);
  json.key("bytes_in").number(served.bytes_in).key("bytes_out").number(served.bytes_out);
  json.key("took_us").number(static_cast<uint64_t>(served.took.count())).end_object();
}

}  // namespace

void append_who_and_what(std::string& out, const Served& served) {
  for (const std::string_view word :
       {served.protocol, served.peer, served.token, served.verb, shortened(served.target)}) {
    out += ' ';
    append_word(out, word);
  }
}

void append_served(std::string& out, const Served& served, std::string_view time, Config::LogFormat format) {
  if (format == Config::LogFormat::kJson) {
    append_json(out, served, time);
  } else {
    append_text(out, served, time);
  }
  out += '\n';
}

std::string slow_warning(const Served& served, Millis slow) {
  if (slow == Millis::zero() || served.may_wait || served.took <= slow) return {};
  std::string text = "slow request:";
  append_who_and_what(text, served);
  text += fmt::format(" took {}ms", std::chrono::duration_cast<Millis>(served.took).count());
  return text;
}

}  // namespace delayq
