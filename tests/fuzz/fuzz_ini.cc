// Any text as an INI file: what was read is within bounds and in order, and reads the same when it is written
// again.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "ops/seed_config.h"

namespace {

void check(const delayq::IniText& read, size_t lines) {
  if (read.entries.size() > 10'000 || read.errors.size() > 100) __builtin_trap();
  uint32_t before = 0;
  for (const delayq::IniEntry& entry : read.entries) {
    if (entry.key.empty() || entry.line <= before || entry.line > lines) __builtin_trap();
    before = entry.line;
  }
  before = 0;
  for (const delayq::IniError& error : read.errors) {
    if (error.what.empty() || error.line <= before || error.line > lines) __builtin_trap();
    before = error.line;
  }
}

/// A quote that can stand around it; '\0' when all of them are in it.
char quote_for(std::string_view value) {
  for (const char quote : {'"', '\'', '`'}) {
    if (value.find(quote) == std::string_view::npos) return quote;
  }
  return '\0';
}

void check_again(const delayq::IniText& read) {
  for (const delayq::IniEntry& entry : read.entries) {
    const char quote = quote_for(entry.value);
    if (quote == '\0' || entry.value.size() > size_t{60} << 10) continue;
    // Not in the first line, where a key that begins with a byte order mark would lose it.
    const std::string text = "\n" + (entry.section.empty() ? std::string() : "[" + entry.section + "]\n") +
                             entry.key + " = " + quote + entry.value + quote + " ; again\n";
    const delayq::IniText again = delayq::read_ini(text);
    if (!again.errors.empty() || again.entries.size() != 1) __builtin_trap();
    if (again.entries[0].name() != entry.name() || again.entries[0].value != entry.value) __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  size_t lines = 1;
  for (const char c : text) lines += c == '\n' ? 1 : 0;
  const delayq::IniText read = delayq::read_ini(text);
  check(read, lines);
  check_again(read);
  return 0;
}
