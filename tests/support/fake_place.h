#pragma once

#include <array>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cli/importing.h"
#include "cli/seeds/seed_job.h"

namespace delayq::cli {

/// The replies to commands that are sent together, from a function that answers one at a time. Stops at the
/// first command without an answer.
Result<std::vector<resp::Value>> answer_each(std::span<const Words> commands, const auto& answer) {
  std::vector<resp::Value> replies;
  for (const Words& command : commands) {
    Result<resp::Value> reply = answer(command);
    if (!reply) return reply.error();
    replies.push_back(std::move(*reply));
  }
  return replies;
}

/// A server's answers, as far as a migration asks, without one. Jobs have texts as bodies.
class FakePlace {
 public:
  struct Stored {
    std::string state;
    std::string body;
  };
  using Key = std::pair<std::string, std::string>;  // topic, id
  struct Schedule {
    std::string topic;
    std::string cron;
    std::string body;
    uint64_t made = 0;
    bool moving = false;
    std::string overlap = "allow";
    bool operator==(const Schedule&) const = default;
  };

  explicit FakePlace(std::string name, bool is_exclusive = false) {
    place_.name = std::move(name);
    place_.is_exclusive = is_exclusive;
    place_.ask = [this](const Words& command) -> Result<resp::Value> {
      Result<resp::Value> reply = answer(command);
      if (reply && reply->is_error()) return error_of_reply(reply->text);
      return reply;
    };
    place_.ask_all = [this](std::span<const Words> commands) {
      return answer_each(commands, [this](const Words& command) { return answer(command); });
    };
  }

  const Place& place() const { return place_; }

  std::map<Key, Stored> jobs;
  std::map<std::string, Schedule> schedules{};
  size_t page_jobs = 3;
  uint64_t asked = 0;
  uint64_t dies_at = 0;     ///< that command and all behind it are not answered; 0: none
  bool dies_after = false;  ///< it is carried out all the same
  std::function<void(const Words&)> before{};
  std::string refuses{};  ///< the body that it does not take

 private:
  static resp::Value text(std::string words, resp::Value::Type type = resp::Value::Type::kBulk) {
    resp::Value value;
    value.type = type;
    value.text = std::move(words);
    return value;
  }
  static resp::Value number(uint64_t count) {
    resp::Value value;
    value.type = resp::Value::Type::kInteger;
    value.integer = static_cast<int64_t>(count);
    return value;
  }
  static resp::Value array(std::vector<resp::Value> items) {
    resp::Value value;
    value.type = resp::Value::Type::kArray;
    value.items = std::move(items);
    return value;
  }

  Result<resp::Value> answer(const Words& command) {
    ++asked;
    const Error gone{ErrorCode::kUnavailable, {}, "gone"};
    const bool is_dead = dies_at > 0 && asked >= dies_at;
    if (is_dead && (!dies_after || asked > dies_at)) return gone;
    if (before) before(command);
    resp::Value reply = carry_out(command);
    if (is_dead) return gone;
    return reply;
  }

  resp::Value carry_out(const Words& command) {
    if (command[0] == "EXPORT") return exported(command);
    if (command[0] == "IMPORT") return imported(command);
    if (command[0] == "TOPICS") return topics();
    if (command[0] == "PURGE") return number(purge(command));
    if (command[0] == "SCHEDULE") return schedule(command);
    if (command[0] == "PUSH") {  // TOPIC DELAY BODY ID id
      jobs[{command[1], command[5]}] = {"delayed", command[3]};
      return text(command[5]);
    }
    const auto found = jobs.find({command[1], command[2]});
    if (command[0] == "GET")
      return found == jobs.end() ? resp::Value{} : array({text("body"), text(found->second.body)});
    // CANCEL
    if (found == jobs.end()) return text("unknown", resp::Value::Type::kSimple);
    const std::string& state = found->second.state;
    if (state != "delayed" && state != "ready") return text(state, resp::Value::Type::kSimple);
    jobs.erase(found);
    return text("cancelled", resp::Value::Type::kSimple);
  }

  static std::string line(const Key& key, const Stored& job) {
    return fmt::format(
        R"({{"topic":"{}","id":"{}","state":"{}","body_text":"{}","kept_until":"2099-01-01T00:00:00Z"}})",
        key.first, key.second, job.state, job.body);
  }

  static std::string line(const std::string& name, const Schedule& each) {
    return fmt::format(
        R"({{"schedule":"{}","topic":"{}","cron":"{}","body_text":"{}","progress":{{"made":{}{}}}}})", name,
        each.topic, each.cron, each.body, each.made, each.moving ? R"(,"moving":true)" : "");
  }

  resp::Value schedule(const Words& command) {
    if (command[1] == "LIST") {
      std::vector<resp::Value> all;
      for (const auto& [name, each] : schedules)
        all.push_back(array({text("name"), text(name), text("topic"), text(each.topic), text("overlap"),
                             text(each.overlap), text("occurrences_made"), number(each.made)}));
      return array({text(""), array(std::move(all))});
    }
    const auto found = schedules.find(command[2]);
    if (found == schedules.end())
      return command[1] == "GET" ? resp::Value{} : text("NOTFOUND gone", resp::Value::Type::kError);
    const Schedule each = found->second;
    if (command[1] == "DEL") schedules.erase(found);
    return array({text("topic"), text(each.topic), text("body"), text(each.body), text("cron"),
                  text(each.cron), text("zone"), text("UTC")});
  }

  /// A line that marks a schedule, or has one.
  resp::Value import_schedule(const std::string& given, const ExportedLine& read) {
    for (const bool moving : {true, false}) {
      if (!given.ends_with(fmt::format(R"("moving":{}}})", moving)) || !read.rule.empty()) continue;
      const auto found = schedules.find(read.schedule);
      if (found == schedules.end()) return text("NOTFOUND gone", resp::Value::Type::kError);
      const bool was = std::exchange(found->second.moving, moving);
      return text(was == moving ? "kept" : "replaced", resp::Value::Type::kSimple);
    }
    const Result<seeds::JsonJob> parts = seeds::JsonJob::parse(given);
    const Result<seeds::JsonJob> progress = seeds::JsonJob::parse(parts->find("progress")->text);
    Schedule wanted{read.topic, parts->text("cron"), read.body,
                    static_cast<uint64_t>(progress->number("made").value_or(0))};
    const auto [found, is_new] = schedules.try_emplace(read.schedule, wanted);
    return text(is_new ? "created" : "kept", resp::Value::Type::kSimple);
  }

  /// By topic and id; the cursor is the last one's name.
  resp::Value exported(const Words& command) const {
    std::string topic;
    std::string cursor;
    std::string state;
    for (size_t i = 1; i + 1 < command.size(); i += 2) {
      if (command[i] == "STATE") state = command[i + 1];
      if (command[i] == "TOPIC") topic = command[i + 1];
      if (command[i] == "CURSOR") cursor = command[i + 1];
    }
    std::vector<resp::Value> lines;
    std::string last;
    for (const auto& [name, each] : schedules) {
      const std::string place = "!" + name;  // before all topics
      if ((!topic.empty() && each.topic != topic) || !state.empty() || place <= cursor) continue;
      if (lines.size() == page_jobs) return array({text(last), array(std::move(lines))});
      lines.push_back(text(line(name, each)));
      last = place;
    }
    for (const auto& [key, job] : jobs) {
      const std::string name = key.first + "/" + key.second;
      if ((!topic.empty() && key.first != topic) || name <= cursor) continue;
      if (!state.empty() && job.state != state) continue;
      if (lines.size() == page_jobs) return array({text(last), array(std::move(lines))});
      lines.push_back(text(line(key, job)));
      last = name;
    }
    return array({text(""), array(std::move(lines))});
  }

  resp::Value imported(const Words& command) {
    std::vector<resp::Value> answers;
    for (size_t i = 2; i < command.size(); ++i) {
      const Result<ExportedLine> read = read_exported(command[i]);
      if (!read || (!refuses.empty() && read->body == refuses)) {
        answers.push_back(text("TOOLARGE body", resp::Value::Type::kError));
        continue;
      }
      if (!read->schedule.empty()) {
        answers.push_back(import_schedule(command[i], *read));
        continue;
      }
      static constexpr std::array<std::string_view, kKinds> kStored{"delayed", "done", "dead"};
      const bool is_new =
          jobs.try_emplace({read->topic, read->id},
                           Stored{std::string(kStored[static_cast<size_t>(read->kind)]), read->body})
              .second;
      answers.push_back(text(is_new ? "created" : "kept", resp::Value::Type::kSimple));
    }
    return array(std::move(answers));
  }

  resp::Value topics() const {
    std::map<std::string, std::map<std::string, uint64_t>> counts;
    for (const auto& [key, job] : jobs) ++counts[key.first][job.state];
    std::vector<resp::Value> rows;
    for (auto& [topic, states] : counts) {
      std::vector<resp::Value> row{text(topic)};
      for (const std::string_view state : TopicCounts::kStates)
        row.push_back(number(states[std::string(state)]));
      rows.push_back(array(std::move(row)));
    }
    return array({text(""), array(std::move(rows))});
  }

  uint64_t purge(const Words& command) {
    return std::erase_if(jobs, [&](const auto& each) {
      return each.first.first == command[1] && (command.size() < 3 || each.second.state == command[2]);
    });
  }

  Place place_;
};

}  // namespace delayq::cli
