#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace delayq::json {

/// Appends JSON to a text, value by value, and puts the commas where they belong.
///
///   Writer json(out);
///   json.begin_object();
///   json.key("id").text(id);
///   json.end_object();
class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  Writer& begin_object() { return open('{'); }
  Writer& end_object() { return close('}'); }
  Writer& begin_array() { return open('['); }
  Writer& end_array() { return close(']'); }

  Writer& key(std::string_view name);
  /// Bytes that are not UTF-8 become question marks.
  Writer& text(std::string_view value);
  Writer& number(uint64_t value);
  Writer& number(int64_t value);
  Writer& number(double value);
  Writer& boolean(bool value) { return raw(value ? "true" : "false"); }
  Writer& null() { return raw("null"); }
  /// REQUIRES: well-formed JSON.
  Writer& raw(std::string_view value) {
    separate();
    out_ += value;
    return *this;
  }

  /// Bytes under a name: as text when they are UTF-8, else in base64 under the name with "_base64".
  Writer& bytes(std::string_view name, std::string_view value);

 private:
  Writer& open(char bracket) {
    separate();
    out_ += bracket;
    needs_comma_ = false;
    return *this;
  }
  Writer& close(char bracket) {
    out_ += bracket;
    needs_comma_ = true;
    return *this;
  }
  void separate() {
    if (needs_comma_) out_ += ',';
    needs_comma_ = true;
  }

  std::string& out_;
  bool needs_comma_ = false;
};

/// One object on one line, member by member, where no other JSON is needed.
class Object {
 public:
  Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  /// Any bytes, as Writer::bytes() has them.
  Object& text(std::string_view name, std::string_view value) {
    writer_.bytes(name, value);
    return *this;
  }
  /// REQUIRES: well-formed JSON.
  Object& raw(std::string_view name, std::string_view value) {
    writer_.key(name).raw(value);
    return *this;
  }
  Object& number(std::string_view name, int64_t value) {
    writer_.key(name).number(value);
    return *this;
  }
  Object& boolean(std::string_view name, bool value) {
    writer_.key(name).boolean(value);
    return *this;
  }

  /// "{...}", without a newline.
  std::string finish() const { return text_ + "}"; }

 private:
  std::string text_ = "{";
  Writer writer_{text_};
};

/// With its quotes.
void append_string(std::string& out, std::string_view text);

/// The body of a job as a member of an object on one line: under "body" when it is a JSON value that fits
/// there byte for byte; else under "body_text" when it is text (in UTF-8, with few escapes); else under
/// "body_base64".
void write_body(Writer& json, std::string_view body);

/// The body of a job as a member of any object: a JSON value under "body" as it was written, other text under
/// "body" as a string; otherwise under "body_base64".
void write_body_value(Writer& json, std::string_view body);

}  // namespace delayq::json
