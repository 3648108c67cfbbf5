// Any bytes as JSON: what is accepted can be taken apart, and its parts are JSON again.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "json/reader.h"
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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 4096) return 0;  // taking apart is quadratic in depth
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const Result<Slice> value = parse(text); value.ok()) take_apart(*value);
  std::string_view rest = text;
  while (!rest.empty() && take_value(rest).ok()) {
  }
  return 0;
}

}  // namespace delayq::json
