#include "cli/top_source.h"

#include <algorithm>
#include <cmath>

namespace delayq::cli {

namespace {

/// Statistics that are asked for together: their replies have to fit into what a server keeps for us.
constexpr size_t kBatch = 200;

int64_t number_of(const resp::Value& map, std::string_view key) {
  const resp::Value* const value = map.find(key);
  return value == nullptr ? 0 : number_in(*value).value_or(0);
}

/// Per second, to a hundredth.
double rate(int64_t before, int64_t now, double seconds) {
  // Fewer than before: the server was started again, or the topic forgotten meanwhile.
  if (seconds <= 0 || now < before) return 0;
  return std::round(100 * static_cast<double>(now - before) / seconds) / 100;
}

bool is_page(const resp::Value& reply) {
  return reply.type == resp::Value::Type::kArray && reply.items.size() == 2 &&
         reply.items[1].type == resp::Value::Type::kArray;
}

}  // namespace

Result<TopSnapshot> TopSource::sample() {
  const std::vector<Words> first{{"STATS"}, {"TOPICS", cursors_.back(), std::to_string(page_)}};
  const Result<std::vector<resp::Value>> overview = session_.ask_all(first);
  if (!overview) return overview.error();
  for (const resp::Value& reply : *overview) {
    if (reply.is_error()) return error_of_reply(reply.text);
  }
  const resp::Value& page = (*overview)[1];
  if (!is_page(page)) return unexpected_reply();
  TopSnapshot snapshot;
  snapshot.server = server_;
  snapshot.at = session_.world.now();
  snapshot.span = last_ == Moment{} ? Millis{} : snapshot.at - last_;
  const double seconds = std::chrono::duration<double>(snapshot.span).count();
  now_.clear();
  snapshot.totals = row_of({}, (*overview)[0], seconds);
  snapshot.topics = number_of((*overview)[0], "topics");
  snapshot.first = sizes_.back();
  next_cursor_ = page.items[0].text;
  snapshot.is_last = next_cursor_.empty();
  const std::vector<resp::Value>& topics = page.items[1].items;
  for (size_t begin = 0; begin < topics.size(); begin += kBatch) {
    std::vector<Words> batch;
    for (size_t i = begin; i < std::min(begin + kBatch, topics.size()); ++i) {
      if (topics[i].items.empty()) return unexpected_reply();
      batch.push_back({"STATS", topics[i].items[0].text});
    }
    const Result<std::vector<resp::Value>> replies = session_.ask_all(batch);
    if (!replies) return replies.error();
    for (size_t i = 0; i < batch.size(); ++i) {
      // A topic that we may not look into is left out.
      if (!(*replies)[i].is_error()) snapshot.rows.push_back(row_of(batch[i][1], (*replies)[i], seconds));
    }
  }
  shown_ = topics.size();
  before_ = now_;
  last_ = snapshot.at;
  return snapshot;
}

TopRow TopSource::row_of(const std::string& topic, const resp::Value& stats, double seconds) {
  const Counts counts{number_of(stats, "pushed"), number_of(stats, "popped"), number_of(stats, "acked")};
  now_[topic] = counts;
  const auto found = before_.find(topic);
  const Counts before = found == before_.end() ? counts : found->second;
  return {.topic = topic,
          .delayed = number_of(stats, "delayed"),
          .ready = number_of(stats, "ready"),
          .reserved = number_of(stats, "reserved"),
          .done = number_of(stats, "done"),
          .dead = number_of(stats, "dead"),
          .waiters = number_of(stats, "waiters"),
          .push_rate = rate(before.pushed, counts.pushed, seconds),
          .pop_rate = rate(before.popped, counts.popped, seconds),
          .ack_rate = rate(before.acked, counts.acked, seconds),
          .late_p50 = Millis{number_of(stats, "lateness_p50_ms")},
          .late_p99 = Millis{number_of(stats, "lateness_p99_ms")},
          .paused = number_of(stats, "paused") != 0};
}

void TopSource::next_page() {
  if (next_cursor_.empty()) return;
  sizes_.push_back(sizes_.back() + shown_);
  cursors_.push_back(next_cursor_);
}

void TopSource::previous_page() {
  if (cursors_.size() == 1) return;
  cursors_.pop_back();
  sizes_.pop_back();
}

}  // namespace delayq::cli
