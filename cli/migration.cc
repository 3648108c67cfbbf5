#include "cli/migration.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "cli/terminal.h"
#include "core/limits.h"
#include "core/siphash.h"

namespace delayq::cli {

namespace {

/// Sent together; their replies are short.
constexpr size_t kMostCancels = Limits::kPageJobs;
/// How often a page is read while schedules are set there.
constexpr int kMostTries = 4;
constexpr std::array<std::string_view, kKinds> kKindWords{"waiting", "done", "dead"};

size_t at(Kind kind) { return static_cast<size_t>(kind); }

std::array<uint64_t, kKinds> by_kind(const TopicCounts& counts) {
  return {counts.live(), counts.done(), counts.dead()};
}

/// With more jobs than this, not all of their ids can be kept.
uint64_t hash_of(const std::string& id) {
  return siphash128(SipKey{0x6d696772617465, 0x64656c617971}, id).low;
}

/// The result of the comparison of one topic.
class Comparison {
 public:
  Comparison(const std::string& topic, const TopicLedger& ledger, std::vector<std::string>& told)
      : topic_(printable(topic, kShownTopic)), ledger_(ledger), told_(told) {}

  void lines() {
    if (ledger_.failed > 0) tell(fmt::format("{} were not stored", grouped_count(ledger_.failed)));
    if (ledger_.others > 0) {
      tell(fmt::format("{} have ids that are other jobs' in the target: they were left where they are",
                       grouped_count(ledger_.others)));
    }
  }

  void target(size_t kind, uint64_t before, uint64_t after, Moment now, const MadeMeanwhile& by_schedules) {
    const uint64_t expected = before + ledger_.created[kind];
    const bool is_over = kind != at(Kind::kWaiting) && after < expected && ledger_.soonest_end <= now;
    const bool is_as_expected =
        after <= expected + by_schedules.made && after + by_schedules.replacing >= expected;
    if (is_as_expected || is_over) return;
    tell(fmt::format("the target has {} {} jobs and should have {} ({} that were there and {} new ones): {}",
                     grouped_count(after), kKindWords[kind], grouped_count(expected), grouped_count(before),
                     grouped_count(ledger_.created[kind]),
                     kind == at(Kind::kWaiting) || after > expected
                         ? "is another program using it?"
                         : "it keeps fewer, as its settings say, or their time was over"));
  }

  void copied(size_t kind, uint64_t left) {
    const uint64_t read = ledger_.read[kind];
    if (left > read) {
      tell(fmt::format("{} {} jobs came into the source meanwhile: the same command brings them",
                       grouped_count(left - read), kKindWords[kind]));
    } else if (left < read && kind == at(Kind::kWaiting)) {
      tell(
          fmt::format("{} waiting jobs went on in the source meanwhile, and wait in the target as well: is "
                      "another program using the source?",
                      grouped_count(read - left)));
    }
  }

  void moved(const TopicCounts& left) {
    const uint64_t running = left.states[2];
    if (running > 0)
      tell(fmt::format("{} are with consumers of the source and stay there: run it again when they are done",
                       grouped_count(running)));
    if (left.all() > running)
      tell(fmt::format("{} are left in the source", grouped_count(left.all() - running)));
  }

 private:
  void tell(std::string what) { told_.push_back(fmt::format("topic {}: {}", topic_, what)); }

  std::string topic_;
  const TopicLedger& ledger_;
  std::vector<std::string>& told_;
};

}  // namespace

Status Migration::run() {
  schedules_.begin();
  std::string cursor;
  do {
    Result<resp::Value> page = read_page(cursor);
    if (!page) return page.error();
    std::vector<resp::Value>& items = page->items[1].items;
    if (Status status = schedules_.take(items); !status) return status;
    if (Status status = take(items); !status) return status;
    cursor = page->items[0].text;
    if (reports_.progress) reports_.progress(lines_.lines());
  } while (!cursor.empty());
  return finish_topic();
}

Result<resp::Value> Migration::read_page(const std::string& cursor) {
  Words command{"EXPORT", "COUNT", std::to_string(Limits::kPageJobs)};
  if (!cursor.empty()) append_option(command, "CURSOR", cursor);
  for (int tries = 1;; ++tries) {
    Result<resp::Value> page = from_.ask(command);
    if (!page) return in_place(from_, page.error());
    if (page->items.size() != 2) return in_place(from_, unexpected_reply());
    // A page that always has another new schedule is taken as it is; what is late is reported.
    const Result<bool> marked = schedules_.mark(page->items[1].items);
    if (!marked) return marked.error();
    if (!*marked || tries == kMostTries) return page;
  }
}

Status Migration::take(std::vector<resp::Value>& page) {
  std::vector<ExportedLine> lines;
  Words texts;
  size_t bytes = 0;
  const auto flush = [&] {
    bytes = 0;
    Status status = store(lines, std::exchange(texts, {}));
    lines.clear();
    return status;
  };
  for (resp::Value& item : page) {
    Result<ExportedLine> line = read_exported(item.text);
    if (!line) return in_place(from_, line.error());
    if (!line->schedule.empty()) continue;
    if (line->topic != topic_) {
      if (Status status = flush(); !status) return status;
      if (Status status = finish_topic(); !status) return status;
      topic_ = line->topic;
    }
    if (!line->id.empty() && !meet(*line)) continue;
    bytes += item.text.size();
    texts.push_back(std::move(item.text));
    lines.push_back(std::move(*line));
    if (texts.size() < kMostImportLines && bytes < kMostImportBytes) continue;
    if (Status status = flush(); !status) return status;
  }
  return flush();
}

bool Migration::meet(const ExportedLine& line) {
  TopicLedger& ledger = topics_[topic_];
  if (line.is_running) ++ledger.running;
  if (line.is_running && removes_) return false;
  const auto [found, is_new] = met_.try_emplace(hash_of(line.id), Met{line.kind});
  // A job that changed its state while the source was read was read twice, with the later state second.
  if (!is_new) --ledger.read[at(found->second.kind)];
  found->second.kind = line.kind;
  ++ledger.read[at(line.kind)];
  return true;
}

Status Migration::store(std::vector<ExportedLine>& lines, Words texts) {
  if (lines.empty()) return {};
  const auto answers = import_lines(to_.ask, "keep", texts);
  if (!answers) return in_place(to_, answers.error());
  std::vector<const ExportedLine*> kept;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!settle(lines[i], (*answers)[i], texts[i])) kept.push_back(&lines[i]);
  }
  return compare(kept);
}

bool Migration::settle(const ExportedLine& line, const resp::Value& answer, const std::string& text) {
  const std::optional<Error> error = lines_.add(answer);
  if (error && reports_.failed) reports_.failed(text, *error);
  TopicLedger& ledger = topics_[line.topic];
  if (error) ++ledger.failed;
  if (error || line.id.empty()) return true;
  if (answer.text == "created") {
    ++ledger.created[at(line.kind)];
    ledger.soonest_end = std::min(ledger.soonest_end, line.kept_until);
  } else if (answer.text == "dropped") {
    ++ledger.dropped;
  } else {
    return false;
  }
  met_[hash_of(line.id)].is_safe = true;
  return true;
}

Status Migration::compare(const std::vector<const ExportedLine*>& kept) {
  std::vector<Known> jobs;
  for (const ExportedLine* line : kept) jobs.push_back({line->topic, line->id, line->body});
  const Result<std::vector<bool>> same = are_there(to_.ask_all, jobs);
  if (!same) return in_place(to_, same.error());
  for (size_t i = 0; i < kept.size(); ++i) {
    TopicLedger& ledger = topics_[kept[i]->topic];
    ++((*same)[i] ? ledger.there : ledger.others);
    met_[hash_of(kept[i]->id)].is_safe = (*same)[i];
  }
  return {};
}

// ---- taking jobs out of the source

Status Migration::finish_topic() {
  Status status;
  if (removes_ && !met_.empty()) status = remove_topic(topics_[topic_]);
  met_.clear();
  return status ? status : Status{in_place(from_, status.error())};
}

Status Migration::remove_topic(TopicLedger& ledger) {
  const bool is_clean = ledger.failed == 0 && ledger.others == 0 && ledger.dropped == 0;
  Result<TopicCounts> left = count_left();
  if (!left) return left.error();
  // If no other program uses it, and nothing runs, all that is there has been copied.
  if (from_.is_exclusive && is_clean && ledger.running == 0 && left->all() == ledger.all_read())
    return purge(ledger, {"PURGE", topic_});
  if (Status status = remove_waiting(ledger); !status) return status;
  left = count_left();
  if (!left) return left.error();
  // If nothing waits and nothing runs, no job can finish meanwhile.
  if (left->live() > 0 || !is_clean) return {};
  for (const Kind kind : {Kind::kDone, Kind::kDead}) {
    const uint64_t count = by_kind(*left)[at(kind)];
    if (count == 0 || count > ledger.read[at(kind)]) continue;
    if (Status status = purge(ledger, {"PURGE", topic_, std::string(kKindWords[at(kind)])}); !status)
      return status;
  }
  return {};
}

Result<TopicCounts> Migration::count_left() const {
  const Result<Counts> all = count_topics(from_.ask);
  if (!all) return all.error();
  return counts_of(*all, topic_);
}

Status Migration::purge(TopicLedger& ledger, const Words& command) const {
  const Result<resp::Value> reply = from_.ask(command);
  if (!reply) return reply.error();
  ledger.removed += static_cast<uint64_t>(number_in(*reply).value_or(0));
  return {};
}

Status Migration::remove_waiting(TopicLedger& ledger) {
  // In the order of a job's life. With a state, the export has no schedules.
  for (const char* state : {"delayed", "ready"}) {
    if (Status status = remove_in(state, ledger); !status) return status;
  }
  return {};
}

Status Migration::remove_in(const std::string& state, TopicLedger& ledger) {
  // The cursor may be a job that is removed, so it starts from the beginning after each page that had jobs.
  std::string cursor;
  for (;;) {
    Words command{"EXPORT", "COUNT", std::to_string(kMostCancels), "TOPIC", topic_, "STATE", state};
    if (!cursor.empty()) append_option(command, "CURSOR", cursor);
    const Result<resp::Value> page = from_.ask(command);
    if (!page) return page.error();
    if (page->items.size() != 2) return unexpected_reply();
    const Result<std::vector<Words>> cancels = cancels_for(page->items[1].items);
    if (!cancels) return cancels.error();
    if (cancels->empty()) {
      cursor = page->items[0].text;
      if (cursor.empty()) return {};
      continue;
    }
    cursor.clear();
    const auto replies = from_.ask_all(*cancels);
    if (!replies) return replies.error();
    for (const resp::Value& reply : *replies) {
      if (reply.is_error()) return error_of_reply(reply.text);
      ledger.removed += reply.text == "cancelled" ? 1 : 0;
    }
  }
}

Result<std::vector<Words>> Migration::cancels_for(const std::vector<resp::Value>& page) {
  std::vector<Words> cancels;
  for (const resp::Value& item : page) {
    const Result<ExportedLine> line = read_exported(item.text);
    if (!line) return line.error();
    if (line->id.empty() || line->kind != Kind::kWaiting || line->is_running) continue;
    const auto met = met_.find(hash_of(line->id));
    if (met == met_.end() || !met->second.is_safe) continue;
    met->second.is_safe = false;  // once
    cancels.push_back({"CANCEL", topic_, line->id});
  }
  return cancels;
}

// ---- is everything there?

std::vector<std::string> Migration::differences(const Counts& before, const Counts& source,
                                                const Counts& target, Moment now) const {
  std::map<std::string, TopicLedger> all = topics_;
  for (const auto& [name, counts] : source) all.try_emplace(name);
  std::vector<std::string> told = schedules_.differences();
  const std::map<std::string, MadeMeanwhile> made = schedules_.made_meanwhile();
  for (const auto& [name, ledger] : all) {
    Comparison topic(name, ledger, told);
    const TopicCounts left = counts_of(source, name);
    const auto had = by_kind(counts_of(before, name));
    const auto has = by_kind(counts_of(target, name));
    const auto by_schedules = made.find(name);
    topic.lines();
    for (size_t kind = 0; kind < kKinds; ++kind) {
      topic.target(kind, had[kind], has[kind], now,
                   by_schedules == made.end() ? MadeMeanwhile{} : by_schedules->second);
      if (!removes_) topic.copied(kind, by_kind(left)[kind]);
    }
    if (removes_) topic.moved(left);
  }
  return told;
}

}  // namespace delayq::cli
