#include "json/body.h"

#include <algorithm>

#include "core/encoding.h"
#include "core/text.h"
#include "json/reader.h"

namespace delayq::json {

namespace {

/// Whether the body can stand in the line as it is and be found there again. The line itself is one level.
bool is_plain_json(std::string_view body) {
  if (body.find_first_of("\r\n") != std::string_view::npos) return false;
  const auto brackets = std::count_if(body.begin(), body.end(), [](char c) { return c == '[' || c == '{'; });
  if (brackets >= kMaxDepth) return false;
  const Result<Slice> value = parse(body);
  return value.ok() && value->text.size() == body.size();
}

/// Whether it is worth reading as text: UTF-8 that does not grow too much by its escapes.
bool is_readable(std::string_view body) {
  size_t growth = 0;
  for (const char c : body) {
    if (static_cast<unsigned char>(c) < 0x20) growth += c == '\n' || c == '\r' || c == '\t' ? 1 : 5;
    growth += c == '"' || c == '\\' ? 1 : 0;
  }
  return growth <= body.size() && is_utf8(body);
}

}  // namespace

void write_body(Writer& json, std::string_view body) {
  if (is_plain_json(body)) {
    json.key("body").raw(body);
  } else if (is_readable(body)) {
    json.key("body_text").text(body);
  } else {
    json.key("body_base64").text(to_base64(body));
  }
}

void write_body_value(Writer& json, std::string_view body) {
  if (parse(body).ok()) {
    json.key("body").raw(body);
  } else {
    json.bytes("body", body);
  }
}

}  // namespace delayq::json
