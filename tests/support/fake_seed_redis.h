#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/seeds/redis_reader.h"

namespace delayq::cli::seeds {

/// What a Redis answers to a RedisReader, without one: keys of any type, with anything in them.
class FakeRedis {
 public:
  struct Entry {
    std::string type;                  ///< string, list, zset, hash
    std::vector<std::string> items{};  ///< of a zset and a hash in pairs: member, score; field, value
  };

  std::map<std::string, Entry> keys;

  RedisReader reader() {
    return RedisReader([this](std::span<const Words> commands) -> Result<std::vector<resp::Value>> {
      std::vector<resp::Value> replies;
      for (const Words& command : commands) replies.push_back(answer(command));
      return replies;
    });
  }

 private:
  using Value = resp::Value;

  static Value text(std::string words, Value::Type type = Value::Type::kBulk) {
    Value value;
    value.type = type;
    value.text = std::move(words);
    return value;
  }
  static Value number(size_t count) {
    Value value;
    value.type = Value::Type::kInteger;
    value.integer = static_cast<int64_t>(count);
    return value;
  }
  static Value array(std::vector<Value> items) {
    Value value;
    value.type = Value::Type::kArray;
    value.items = std::move(items);
    return value;
  }
  static Value texts(const std::vector<std::string>& all) {
    std::vector<Value> items;
    items.reserve(all.size());
    for (const std::string& each : all) items.push_back(text(each));
    return array(std::move(items));
  }
  static Value page(const std::vector<std::string>& all) { return array({text("0"), texts(all)}); }
  static Value wrong_type() {
    return text("WRONGTYPE Operation against a key holding the wrong kind of value", Value::Type::kError);
  }

  Value answer(const Words& command) const {
    if (command[0] == "SCAN") return page(matching(command[3]));
    if (command[0] == "MGET") return strings(command);
    const auto found = keys.find(command[1]);
    if (command[0] == "TYPE")
      return text(found == keys.end() ? "none" : found->second.type, Value::Type::kSimple);
    static const Entry kNothing{"none"};
    return of_key(command, found == keys.end() ? kNothing : found->second);
  }

  /// Each command is for one type.
  static Value of_key(const Words& command, const Entry& entry) {
    static const std::map<std::string, std::string> kTypes{
        {"ZSCAN", "zset"}, {"ZCARD", "zset"}, {"ZSCORE", "zset"}, {"HSCAN", "hash"},
        {"HLEN", "hash"},  {"LLEN", "list"},  {"LRANGE", "list"}, {"HGETALL", "hash"}};
    const auto type = kTypes.find(command[0]);
    if (type == kTypes.end()) return text("ERR unknown command", Value::Type::kError);
    if (entry.type != "none" && entry.type != type->second) return wrong_type();
    if (command[0].ends_with("SCAN")) return page(entry.items);
    if (command[0] == "LLEN") return number(entry.items.size());
    if (command[0] == "ZCARD" || command[0] == "HLEN") return number(entry.items.size() / 2);
    if (command[0] != "ZSCORE") return texts(entry.items);
    for (size_t i = 0; i + 1 < entry.items.size(); i += 2) {
      if (entry.items[i] == command[2]) return text(entry.items[i + 1]);
    }
    return {};
  }

  std::vector<std::string> matching(std::string pattern) const {
    std::erase(pattern, '\\');
    pattern.pop_back();  // the star
    std::vector<std::string> names;
    for (const auto& [name, entry] : keys) {
      if (name.starts_with(pattern)) names.push_back(name);
    }
    return names;
  }

  Value strings(const Words& command) const {
    std::vector<Value> values;
    for (size_t i = 1; i < command.size(); ++i) {
      const auto found = keys.find(command[i]);
      const bool is_text = found != keys.end() && found->second.type == "string";
      values.push_back(is_text ? text(found->second.items.at(0)) : Value{});
    }
    return array(std::move(values));
  }
};

}  // namespace delayq::cli::seeds
