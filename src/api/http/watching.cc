// GET /v1/events: what changes, as it does.
#include <algorithm>

#include <absl/container/flat_hash_set.h>
#include <absl/hash/hash.h>
#include <fmt/format.h>

#include "api/http/conversation.h"
#include "core/duration.h"

namespace delayq::http {

namespace {

using namespace std::chrono_literals;

constexpr Millis kShortest = 100ms;
constexpr Millis kLongest = 1min;
/// A connection on which nothing happens for long is closed by something on the way.
constexpr Millis kSignOfLife = 15s;
/// Who reads slower than things change misses some of them, and hears of the next.
constexpr size_t kMostUnsent = 64 * 1024;

void append_event(std::string& out, std::string_view name, std::string_view data) {
  fmt::format_to(std::back_inserter(out), "event: {}\ndata: {}\n\n", name, data);
}

}  // namespace

Status Conversation::events(const Call& call) {
  Fields fields(call.target.query);
  Watch watch;
  watch.interval = fields.duration("interval").value_or(Millis{1000});
  watch.topic = fields.text("topic").value_or(std::string_view());
  if (watch.interval < kShortest || watch.interval > kLongest) {
    fields.note("interval",
                fmt::format("expected {} to {}", format_duration(kShortest), format_duration(kLongest)));
  }
  if (Status status = fields.finish(); !status.ok()) return status;
  if (Status status = watch.topic.empty() ? Status() : check_topic(watch.topic); !status.ok()) return status;
  if (call.request.method == "HEAD") {  // which has nothing to wait for
    send(reserve(), {200, "text/event-stream", {}, {}});
    return {};
  }
  if (host_.events.is_full()) {
    return Error{ErrorCode::kOverloaded,
                 {},
                 fmt::format("{} watch already, and more may not", Events::kMostWatchers),
                 kSignOfLife};
  }
  watch.next = now_;
  watch.sign_of_life = now_ + kSignOfLife;
  // There is no length: it ends when the connection does.
  const Place place = reserve();
  asked_.erase(place);
  replies_.fill(place, [](std::string& out) {
    out +=
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n"
        "X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n";
  });
  connection_->on_output();
  watch_ = std::move(watch);
  host_.events.add(self());
  front_.lingering.insert(this);
  return {};
}

void Conversation::check_again() {
  api::Conversation::check_again();
  if (!watch_ || front_.access.check_all(caller_, only(Scope::kRead)).ok()) return;
  is_over_ = true;
  if (connection_ != nullptr) connection_->on_output();
}

Moment Conversation::watch(Moment now) {
  if (connection_ == nullptr || is_over_ || !watch_) return kNever;
  if (now < watch_->next) return watch_->next;
  watch_->next = now + watch_->interval;
  const bool is_late =
      replies_.waiting() > 0 || !replies_.output().empty() || connection_->unsent() > kMostUnsent;
  if (watch_->is_asking || is_late) return watch_->next;
  watch_->is_asking = true;
  if (!watch_->topic.empty()) {
    queue_.stats(now, watch_->topic, [self = self(), now](const Result<TopicStats>& stats) {
      const TopicSummaries page = stats.ok() ? self->only_watched(*stats) : TopicSummaries{};
      self->tell_changes(now, nullptr, stats.ok() ? &page : nullptr);
    });
    return watch_->next;
  }
  queue_.totals(now, [self = self(), now](const Result<TotalStats>& totals) {
    if (!totals.ok()) return self->tell_changes(now, nullptr, nullptr);
    self->queue_.topics(now, {}, Limits::kPageJobs,
                        [self, now, totals = *totals](const Result<TopicSummaries>& topics) {
                          self->tell_changes(now, &totals, topics.ok() ? &*topics : nullptr);
                        });
  });
  return watch_->next;
}

/// The one topic that is watched, as a page of topics has it: not at all when it has neither jobs nor
/// settings.
TopicSummaries Conversation::only_watched(const TopicStats& stats) const {
  const auto& counts = stats.counts.by_state;
  const bool has_jobs = std::any_of(counts.begin(), counts.end(), [](uint64_t count) { return count > 0; });
  TopicSummaries page;
  if (!has_jobs && queue_.settings(watch_->topic) == Settings{}) return page;
  TopicSummary& summary = page.topics.emplace_back();
  summary.topic = watch_->topic;
  summary.counts = stats.counts;
  summary.tallies = stats.tallies;
  summary.lateness = stats.lateness;
  summary.waiters = stats.waiters;
  summary.paused = stats.settings.paused;
  return page;
}

/// `totals` is null when one topic is watched, `topics` when the queue could not be asked.
void Conversation::tell_changes(Moment now, const TotalStats* totals, const TopicSummaries* topics) {
  watch_->is_asking = false;
  if (connection_ == nullptr || is_over_ || topics == nullptr) return;
  std::string& out = replies_.output();
  const size_t before = out.size();
  const auto tell = [&](const std::string& key, std::string_view event, const auto& write) {
    std::string data;
    json::Writer json(data);
    write(json);
    uint64_t& seen = watch_->seen[key];
    if (const uint64_t now_is = absl::HashOf(data); seen != now_is) {
      seen = now_is;
      append_event(out, event, data);
    }
  };
  // No topic has a name like this.
  if (totals != nullptr) tell("*", "stats", [&](json::Writer& json) { write_totals(json, *totals); });
  for (const TopicSummary& topic : topics->topics)
    tell(topic.topic, "topic", [&](json::Writer& json) { write_topic(json, topic); });
  const size_t told = topics->topics.size() + (totals != nullptr ? 1 : 0);
  if (watch_->seen.size() > told) tell_gone(*topics);
  if (out.size() == before && now >= watch_->sign_of_life) out += ": still here\n\n";
  if (out.size() == before) return;
  watch_->sign_of_life = now + kSignOfLife;
  connection_->on_output();
}

void Conversation::tell_gone(const TopicSummaries& topics) {
  absl::flat_hash_set<std::string_view> here{"*"};
  for (const TopicSummary& topic : topics.topics) here.insert(topic.topic);
  // Of what comes after a page that is not the last, nothing is known.
  const std::string_view last = topics.cursor.empty() ? std::string_view() : topics.topics.back().topic;
  absl::erase_if(watch_->seen, [&](const auto& seen) {
    if (here.contains(seen.first)) return false;
    if (!last.empty() && seen.first > last) return true;
    std::string data;
    json::Writer(data).begin_object().key("topic").text(seen.first).end_object();
    append_event(replies_.output(), "gone", data);
    return true;
  });
}

}  // namespace delayq::http
