// Any bytes as JSON: what is accepted can be taken apart, and its parts are JSON again.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "json/reader.h"
#include "json/splitter.h"
#include "json/writer.h"

namespace delayq::json {
namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void take_apart(const Slice& value) {
  require(parse(value.text).ok());
  if (value.type == Type::kArray) {
    for (const Slice& item : items_of(value)) take_apart(item);
  } else if (value.type == Type::kObject) {
    for (const Member& member : members_of(value)) take_apart(member.value);
  } else if (value.type == Type::kString) {
    const Result<std::string> text = text_of(value);
    if (!text.ok()) return;
    std::string again;
    append_string(again, *text);
    const Result<Slice> read = parse(again);
    require(read.ok() && *text_of(*read) == *text);
  }
}

/// Cut into its items while it comes, byte by byte, an array has the same items as in one piece.
void cut_up(const std::string& text, const Slice& array) {
  Splitter splitter(Splitter::Form::kArray, text.size());
  const std::vector<Slice> items = items_of(array);
  size_t next = 0;
  for (const char& byte : text) {
    std::string_view piece(&byte, 1);
    while (splitter.next(piece) == Splitter::Outcome::kValue) {
      require(next < items.size() && splitter.value() == items[next].text);
      ++next;
    }
  }
  require(next == items.size() && splitter.finish() == Splitter::Outcome::kMore);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 4096) return 0;  // taking apart is quadratic in depth
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const Result<Slice> value = parse(text); value.ok()) {
    take_apart(*value);
    if (value->type == Type::kArray) cut_up(text, *value);
  }
  Splitter splitter(Splitter::Form::kSequence, size / 2);
  std::string_view pieces = text;
  while (splitter.next(pieces) == Splitter::Outcome::kValue) require(!splitter.value().empty());
  std::string_view rest = text;
  while (!rest.empty() && take_value(rest).ok()) {
  }
  return 0;
}

}  // namespace delayq::json
