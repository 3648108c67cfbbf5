#include "api/http/events.h"

#include <algorithm>
#include <utility>

#include <absl/container/flat_hash_set.h>
#include <absl/hash/hash.h>
#include <fmt/format.h>

#include "api/http/conversation.h"
#include "api/http/v1_json.h"
#include "core/limits.h"

namespace delayq::http {

namespace {

/// A client that reads more slowly than things change misses some changes, and gets the next ones.
constexpr size_t kMostUnsent = 64 * 1024;
/// The key of the totals; no topic has this name.
constexpr std::string_view kTotals = "*";

void append_event(std::string& out, std::string_view name, std::string_view data) {
  fmt::format_to(std::back_inserter(out), "event: {}\ndata: {}\n\n", name, data);
}

}  // namespace

EventStream::EventStream(Conversation& conversation, Queue& queue, Moment now, Options options)
    : conversation_(std::static_pointer_cast<Conversation>(conversation.shared_from_this())),
      queue_(queue),
      options_(std::move(options)),
      next_(now),
      sign_of_life_(now + kSignOfLife) {}

Moment EventStream::watch(Moment now) {
  const std::shared_ptr<Conversation> conversation = conversation_.lock();
  if (conversation == nullptr || !conversation->can_stream()) return kNever;
  if (now < next_) return next_;
  next_ = now + options_.interval;
  if (is_asking_ || conversation->is_behind(kMostUnsent)) return next_;
  is_asking_ = true;
  if (!options_.topic.empty()) {
    queue_.stats(now, options_.topic, [self = shared_from_this(), now](const Result<TopicStats>& stats) {
      const TopicSummaries page = stats.ok() ? self->only_watched(*stats) : TopicSummaries{};
      self->send_changes(now, nullptr, stats.ok() ? &page : nullptr);
    });
    return next_;
  }
  queue_.totals(now, [self = shared_from_this(), now](const Result<TotalStats>& totals) {
    if (!totals.ok()) return self->send_changes(now, nullptr, nullptr);
    self->queue_.topics(now, {}, Limits::kPageJobs,
                        [self, now, totals = *totals](const Result<TopicSummaries>& topics) {
                          self->send_changes(now, &totals, topics.ok() ? &*topics : nullptr);
                        });
  });
  return next_;
}

/// The topic that is watched, as a page of topics. The page is empty when the topic has neither jobs nor
/// settings.
TopicSummaries EventStream::only_watched(const TopicStats& stats) const {
  const auto& counts = stats.counts.by_state;
  const bool has_jobs = std::any_of(counts.begin(), counts.end(), [](uint64_t count) { return count > 0; });
  TopicSummaries page;
  if (!has_jobs && queue_.settings(options_.topic) == Settings{}) return page;
  TopicSummary& summary = page.topics.emplace_back();
  summary.topic = options_.topic;
  summary.counts = stats.counts;
  summary.tallies = stats.tallies;
  summary.lateness = stats.lateness;
  summary.waiters = stats.waiters;
  summary.paused = stats.settings.paused;
  return page;
}

/// `totals` is null when one topic is watched; `topics` is null when the queue could not answer.
void EventStream::send_changes(Moment now, const TotalStats* totals, const TopicSummaries* topics) {
  is_asking_ = false;
  const std::shared_ptr<Conversation> conversation = conversation_.lock();
  if (conversation == nullptr || !conversation->can_stream() || topics == nullptr) return;
  std::string& out = conversation->output();
  const size_t before = out.size();
  const auto send = [&](std::string_view key, std::string_view event, const auto& write) {
    std::string data;
    json::Writer json(data);
    write(json);
    uint64_t& seen = seen_[std::string(key)];
    if (const uint64_t now_is = absl::HashOf(data); seen != now_is) {
      seen = now_is;
      append_event(out, event, data);
    }
  };
  if (totals != nullptr) send(kTotals, "stats", [&](json::Writer& json) { write_totals(json, *totals); });
  for (const TopicSummary& topic : topics->topics)
    send(topic.topic, "topic", [&](json::Writer& json) { write_topic(json, topic); });
  const size_t sent = topics->topics.size() + (totals != nullptr ? 1 : 0);
  if (seen_.size() > sent) send_gone(out, *topics);
  if (out.size() == before && now >= sign_of_life_) out += ": still here\n\n";
  if (out.size() == before) return;
  sign_of_life_ = now + kSignOfLife;
  conversation->on_streamed();
}

void EventStream::send_gone(std::string& out, const TopicSummaries& topics) {
  absl::flat_hash_set<std::string_view> here{kTotals};
  for (const TopicSummary& topic : topics.topics) here.insert(topic.topic);
  // Nothing is known about topics that come after a page that is not the last.
  const std::string_view last = topics.cursor.empty() ? std::string_view() : topics.topics.back().topic;
  absl::erase_if(seen_, [&](const auto& seen) {
    if (here.contains(seen.first)) return false;
    if (!last.empty() && seen.first > last) return true;
    std::string data;
    json::Writer(data).begin_object().key("topic").text(seen.first).end_object();
    append_event(out, "gone", data);
    return true;
  });
}

Moment Events::tick(Moment now) {
  Moment next = kNever;
  std::erase_if(streams_, [&](const std::weak_ptr<EventStream>& each) {
    const std::shared_ptr<EventStream> stream = each.lock();
    if (stream == nullptr) return true;
    const Moment wanted = stream->watch(now);
    next = std::min(next, wanted);
    return wanted == kNever;
  });
  return next;
}

}  // namespace delayq::http
