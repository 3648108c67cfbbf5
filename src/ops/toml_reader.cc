#include "ops/toml_reader.h"

#include <algorithm>

// A syntax error is a value like every other error.
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

namespace delayq {

namespace {

/// A text or a whole number as text; false for anything else.
bool scalar_text(const toml::node& node, std::string& text) {
  if (const auto* string = node.as_string()) {
    text = string->get();
  } else if (const auto* integer = node.as_integer()) {
    text = std::to_string(integer->get());
  } else {
    return false;
  }
  return true;
}

Given other(std::string what) { return {Given::Kind::kOther, std::move(what), {}}; }

Given list_of(const toml::array& array) {
  Given given{.kind = Given::Kind::kList, .text = {}, .list = {}};
  for (const toml::node& item : array) {
    std::string text;
    if (!scalar_text(item, text)) return other("a list of something else than texts");
    given.list.push_back(std::move(text));
  }
  return given;
}

Given given_of(const toml::node& node) {
  Given given;
  if (scalar_text(node, given.text)) {
    given.kind = node.is_string() ? Given::Kind::kText : Given::Kind::kNumber;
    return given;
  }
  if (const auto* boolean = node.as_boolean()) {
    return {Given::Kind::kBoolean, boolean->get() ? "true" : "false", {}};
  }
  if (const auto* array = node.as_array()) return list_of(*array);
  if (node.is_floating_point()) return other("a number with a fraction");
  return other("a date or a time");
}

void walk(const toml::table& table, std::vector<std::string>& path, std::vector<TomlEntry>& entries) {
  for (const auto& [key, node] : table) {
    path.emplace_back(key.str());
    const toml::table* const inner = node.as_table();
    if (inner != nullptr && !inner->empty()) {
      walk(*inner, path, entries);
    } else {
      // The key's own place: a value may begin on a later line.
      const uint32_t line = key.source().begin ? key.source().begin.line : node.source().begin.line;
      Given value = inner != nullptr ? Given{Given::Kind::kTable, {}, {}} : given_of(node);
      entries.push_back({path, std::move(value), line});
    }
    path.pop_back();
  }
}

}  // namespace

std::variant<std::vector<TomlEntry>, TomlError> read_toml(std::string_view text) {
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return TomlError{error.source().begin.line, std::string(error.description())};
  }
  std::vector<TomlEntry> entries;
  std::vector<std::string> path;
  walk(parsed.table(), path, entries);
  std::stable_sort(entries.begin(), entries.end(),
                   [](const TomlEntry& a, const TomlEntry& b) { return a.line < b.line; });
  return entries;
}

}  // namespace delayq
