#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

#include "engine/redis/arguments.h"
#include "engine/redis/keys.h"
#include "engine/redis/scripts.h"
#include "tests/support/redis_driver.h"
#include "tests/support/redis_process.h"

namespace delayq::redis {

/// For tests of single scripts on a real Redis: they check replies, and what is in Redis afterwards. Each
/// test has its own prefix on one server, and one shard.
class ScriptTest : public testing::Test {
 protected:
  static constexpr int64_t kNow = 1'700'000'000'000;
  static constexpr std::string_view kBody{"zeros \0 and \r\n", 14};

  ScriptTest() { driver_.connect(); }

  static support::RedisProcess& server() {
    static support::RedisProcess process;
    return process;
  }
  static net::redis::ClientOptions options() {
    net::redis::ClientOptions options;
    options.addresses = {{"127.0.0.1", server().port()}};
    return options;
  }
  static std::string new_prefix() {
    static int tests = 0;
    return "test" + std::to_string(++tests);
  }

  /// What scripts are told about the server that calls them.
  std::string sender_ = "0@me";

  /// The arguments that all scripts about a topic get first.
  Arguments about(std::string_view topic, int64_t now = kNow) const {
    Arguments arguments;
    arguments.number(now).text(topic).text(channel_).text(sender_);
    return arguments;
  }
  /// Runs a script on the keys of this topic, with its own arguments after the four common ones.
  resp::Value run(const net::redis::Script& script, std::string_view topic,
                  const std::vector<std::string>& own, int64_t now = kNow) {
    Arguments arguments = about(topic, now);
    for (const std::string& each : own) arguments.text(each);
    return run(script, topic, arguments);
  }
  resp::Value run(const net::redis::Script& script, std::string_view topic, const Arguments& arguments) {
    const TopicKeys keys = keys_.topic(0, topic);
    return run(script, {keys.all().begin(), keys.all().end()}, arguments.words());
  }
  resp::Value run(const net::redis::Script& script, const std::vector<std::string_view>& keys,
                  std::span<const std::string_view> arguments) {
    const auto reply = driver_.run(script, keys, {arguments.begin(), arguments.end()});
    if (!reply.ok()) throw std::runtime_error(to_string(reply.error()));
    return *reply;
  }
  /// Runs a script about many topics: with the keys of a topic with an empty name.
  resp::Value run_over(const net::redis::Script& script, const std::vector<std::string>& own,
                       std::string_view wanted = {}) {
    Arguments arguments = about(wanted);
    for (const std::string& each : own) arguments.text(each);
    return run(script, {}, arguments);
  }

  /// How many jobs were cancelled in all topics, according to the reply of cancel_group.
  static int64_t cancelled_by(const resp::Value& answer) {
    int64_t sum = 0;
    const std::vector<resp::Value>& by_topic = answer.items.at(2).items;
    for (size_t i = 1; i < by_topic.size(); i += 2) sum += by_topic[i].integer;
    return sum;
  }

  static Job job(std::string_view id, JobState state, int64_t due = kNow + 500) {
    Job job;
    job.topic = "t";
    job.id = id;
    job.group = "g";
    job.options = "options";
    job.outcome = "connection refused";
    job.body = kBody;
    job.state = state;
    job.due = from_unix_ms(due);
    if (!is_live(state)) job.until = from_unix_ms(kNow + 1'000);
    return job;
  }
  /// Stores a job in its state, with restore.lua.
  resp::Value store(const Job& job, OnConflict policy = OnConflict::kReject, uint32_t keep = 1'000) {
    Arguments arguments = about(job.topic);
    const RecordPieces record = write_job(job, Millis::zero(), arguments.storage());
    arguments.text(job.id)
        .text(record.before)
        .text(record.after)
        .number(static_cast<int>(policy))
        .number(keep);
    return run(scripts::kRestore, job.topic, arguments);
  }
  /// The record of a job in the pool. Its strings live as long as this test.
  Record record_of(std::string_view id, std::string_view topic = "t") {
    records_.push_back(
        std::make_unique<std::string>(server().command({"HGET", key(Key::kPool, topic), id}).text));
    const std::optional<Record> record = read_record(*records_.back());
    if (!record) throw std::runtime_error("no record of " + std::string(id));
    return *record;
  }

  std::string command(std::initializer_list<std::string_view> words) {
    return support::text_of(server().command(words));
  }
  std::string key(Key which, std::string_view topic = "t") const {
    return std::string(keys_.topic(0, topic)[which]);
  }
  std::string group(std::string_view name) const { return key(Key::kGroups) + std::string(name); }
  /// The members of a zset in order, without or with their scores.
  std::string members(Key which, std::string_view topic = "t") {
    return command({"ZRANGE", key(which, topic), "0", "-1"});
  }
  std::string scores(Key which, std::string_view topic = "t") {
    return command({"ZRANGE", key(which, topic), "0", "-1", "WITHSCORES"});
  }
  /// The ids of a line of ready jobs, in hand-over order.
  std::vector<std::string> line(Key which = Key::kReady, std::string_view topic = "t") {
    constexpr size_t kRankBytes = 20;
    std::vector<std::string> ids;
    for (const resp::Value& member : server().command({"ZRANGE", key(which, topic), "0", "-1"}).items)
      ids.push_back(member.text.substr(kRankBytes));
    return ids;
  }
  /// The names of all keys of this test, without the prefix.
  std::vector<std::string> names() {
    std::vector<std::string> names;
    for (const resp::Value& name : server().command({"KEYS", prefix_ + ":*"}).items)
      names.push_back(name.text.substr(prefix_.size() + 5));
    return names;
  }

  /// Starts to record messages for news().
  void listen() {
    bool is_listening = false;
    driver_.client().subscribe(
        channel_, [this](std::string_view message) { heard_.emplace_back(message); },
        [&is_listening] { is_listening = true; });
    driver_.turn_until("the subscription", [&is_listening] { return is_listening; });
  }
  /// The messages that were published since the last call, in order.
  std::vector<std::string> news() {
    // Messages come in order, so this one comes last.
    server().command({"PUBLISH", channel_, "mark"});
    driver_.turn_until("the news", [this] { return !heard_.empty() && heard_.back() == "mark"; });
    heard_.pop_back();
    return std::exchange(heard_, {});
  }

  std::string prefix_ = new_prefix();
  std::string channel_ = prefix_ + ":news";
  Keyspace keys_{prefix_, 1};
  support::RedisDriver driver_{options()};

 private:
  std::vector<std::string> heard_;
  std::vector<std::unique_ptr<std::string>> records_;
};

}  // namespace delayq::redis
