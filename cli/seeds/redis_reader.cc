#include "cli/seeds/redis_reader.h"

#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "core/text.h"

namespace delayq::cli::seeds {

namespace {

/// Bodies come with each, so a page is small.
constexpr std::string_view kPage = "256";
constexpr int64_t kListPage = 256;
constexpr double kLastSecond = 253'402'300'799;  // the year 9999

/// With the command and its key, which are needed to find the cause.
Error error_of(const Words& command, const resp::Value& reply) {
  return {ErrorCode::kUnavailable,
          {},
          fmt::format("Redis says to {} {}: {}", command[0],
                      command.size() > 1 ? quote(command[1]) : std::string(), reply.text)};
}

Error unexpected(std::string_view command) {
  return {ErrorCode::kInternal, {}, fmt::format("the reply to {} is not a valid Redis reply", command)};
}

/// A page of SCAN, HSCAN or ZSCAN.
struct ScanPage {
  std::string cursor;
  std::vector<std::string> items;
};

Result<ScanPage> page_of(resp::Value reply, std::string_view command) {
  if (reply.items.size() != 2) return unexpected(command);
  ScanPage page;
  page.cursor = reply.items[0].text;
  page.items.reserve(reply.items[1].items.size());
  for (resp::Value& item : reply.items[1].items) page.items.push_back(std::move(item.text));
  return page;
}

}  // namespace

Result<std::vector<resp::Value>> RedisReader::ask(std::span<const Words> commands) const {
  if (commands.empty()) return std::vector<resp::Value>{};
  Result<std::vector<resp::Value>> replies = ask_each(commands);
  if (!replies) return replies;
  for (size_t i = 0; i < replies->size(); ++i) {
    if ((*replies)[i].is_error()) return error_of(commands[i], (*replies)[i]);
  }
  return replies;
}

Result<std::vector<resp::Value>> RedisReader::ask_each(std::span<const Words> commands) const {
  if (commands.empty()) return std::vector<resp::Value>{};
  Result<std::vector<resp::Value>> replies = ask_(commands);
  if (replies && replies->size() != commands.size()) return unexpected(commands.front().front());
  return replies;
}

Result<resp::Value> RedisReader::ask_one(const Words& command) const {
  Result<std::vector<resp::Value>> replies = ask(std::span(&command, 1));
  if (!replies) return replies.error();
  return std::move(replies->front());
}

Status RedisReader::scan_keys(std::string_view prefix, std::string_view type,
                              const std::function<Status(const Page&)>& take) const {
  std::string cursor = "0";
  do {
    Result<resp::Value> reply =
        ask_one({"SCAN", cursor, "MATCH", escaped_pattern(prefix) + "*", "COUNT", "1000"});
    if (!reply) return reply.error();
    Result<ScanPage> page = page_of(std::move(*reply), "SCAN");
    if (!page) return page.error();
    // SCAN itself knows types only since Redis 6.
    std::vector<Words> questions;
    for (const std::string& key : page->items) questions.push_back({"TYPE", key});
    const Result<std::vector<resp::Value>> types = ask(questions);
    if (!types) return types.error();
    Page keys;
    for (size_t i = 0; i < page->items.size(); ++i) {
      if ((*types)[i].text == type) keys.push_back(std::move(page->items[i]));
    }
    if (Status status = take(keys); !status) return status;
    cursor = page->cursor;
  } while (cursor != "0");
  return {};
}

Status RedisReader::scan_pairs(const std::string& command, const std::string& key,
                               const std::function<Status(const std::vector<Pair>&)>& take) const {
  std::string cursor = "0";
  do {
    Result<resp::Value> reply = ask_one({command, key, cursor, "COUNT", std::string(kPage)});
    if (!reply) return reply.error();
    Result<ScanPage> page = page_of(std::move(*reply), command);
    if (!page || page->items.size() % 2 != 0) return page ? unexpected(command) : page.error();
    std::vector<Pair> pairs;
    for (size_t i = 0; i < page->items.size(); i += 2)
      pairs.emplace_back(std::move(page->items[i]), std::move(page->items[i + 1]));
    if (Status status = take(pairs); !status) return status;
    cursor = page->cursor;
  } while (cursor != "0");
  return {};
}

Status RedisReader::scan_zset(const std::string& key,
                              const std::function<Status(const std::vector<Pair>&)>& take) const {
  return scan_pairs("ZSCAN", key, take);
}

Status RedisReader::scan_hash(const std::string& key,
                              const std::function<Status(const std::vector<Pair>&)>& take) const {
  return scan_pairs("HSCAN", key, take);
}

Status RedisReader::walk_list(const std::string& key, const std::function<Status(const Page&)>& take) const {
  const Result<resp::Value> type = ask_one({"TYPE", key});
  if (!type) return type.error();
  if (type->text != "list") return {};
  // From the end, so that items that `take` removes do not move those that are not read yet.
  const auto length = static_cast<int64_t>(count("LLEN", key));
  for (int64_t end = length; end > 0; end -= kListPage) {
    const int64_t begin = end > kListPage ? end - kListPage : 0;
    Result<resp::Value> reply = ask_one({"LRANGE", key, std::to_string(begin), std::to_string(end - 1)});
    if (!reply) return reply.error();
    Page page;
    for (resp::Value& item : reply->items) page.push_back(std::move(item.text));
    if (Status status = take(page); !status) return status;
  }
  return {};
}

Result<std::vector<std::optional<std::string>>> RedisReader::get(const std::vector<std::string>& keys) const {
  std::vector<std::optional<std::string>> values;
  if (keys.empty()) return values;
  Words command{"MGET"};
  command.insert(command.end(), keys.begin(), keys.end());
  Result<resp::Value> reply = ask_one(command);
  if (!reply) return reply.error();
  if (reply->items.size() != keys.size()) return unexpected("MGET");
  for (resp::Value& item : reply->items) {
    if (item.type == resp::Value::Type::kNull) {
      values.emplace_back();
    } else {
      values.emplace_back(std::move(item.text));
    }
  }
  return values;
}

uint64_t RedisReader::count(const std::string& command, const std::string& key) const {
  const Result<resp::Value> reply = ask_one({command, key});
  return reply && reply->integer > 0 ? static_cast<uint64_t>(reply->integer) : 0;
}

std::optional<Moment> moment_of_seconds(std::string_view text) {
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (!(seconds >= 0) || seconds > kLastSecond) return std::nullopt;
  return from_unix_ms(static_cast<int64_t>(std::llround(seconds * 1'000)));
}

std::string escaped_pattern(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    if (std::string_view("*?[]^\\").find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

}  // namespace delayq::cli::seeds
