#include "api/http/streams.h"

#include <algorithm>
#include <utility>

#include <absl/container/flat_hash_set.h>
#include <absl/hash/hash.h>
#include <fmt/format.h>

#include "api/http/conversation.h"
#include "api/http/fields.h"
#include "api/http/v1.h"
#include "core/limits.h"
#include "core/moment.h"

namespace delayq::http {

namespace {

constexpr uint64_t kMostFailuresShown = 1'000;

}  // namespace

/// What must be kept of a step until it is answered.
struct PushStream::Step {
  uint64_t first_index = 0;
  std::vector<Status> problems;     ///< one for each job; those that are OK went to the queue
  std::vector<std::string> topics;  ///< of each job
};

PushStream::PushStream(Queue& queue, const api::Access& access, api::Caller caller, Options options,
                       Done done)
    : queue_(queue),
      access_(access),
      caller_(std::move(caller)),
      options_(options),
      done_(std::move(done)),
      splitter_(options.form, options.job_bytes) {}

void PushStream::fail(std::string detail) {
  if (error_) return;
  if (!is_first_step_) detail += fmt::format("; the {} jobs before it are stored", first_index_);
  error_ = invalid(std::move(detail));
  items_.clear();
  texts_.clear();
}

void PushStream::take(Moment now, std::string_view piece) {
  while (!error_) {
    const json::Splitter::Outcome outcome = splitter_.next(piece);
    if (outcome == json::Splitter::Outcome::kMore) return;
    if (outcome == json::Splitter::Outcome::kBroken)
      return fail(fmt::format("job {}: {}", first_index_ + items_.size(), splitter_.error()));
    // A full step is pushed when another job follows, so a request that just fills one step is one commit.
    if (items_.size() >= options_.step_jobs || texts_.size() >= options_.step_bytes) push_step(now);
    add(splitter_.value());
  }
}

void PushStream::add(std::string_view text) {
  const Result<json::Slice> parsed = json::parse(text);
  if (!parsed.ok())
    return fail(fmt::format("job {}: not JSON: {}", first_index_ + items_.size(), parsed.error().detail));
  items_.push_back({texts_.size(), text.size(), parsed->type});
  texts_ += text;
}

void PushStream::finish(Moment now) {
  if (!error_) {
    const json::Splitter::Outcome outcome = splitter_.finish();
    if (outcome == json::Splitter::Outcome::kBroken)
      fail(fmt::format("job {}: {}", first_index_ + items_.size(), splitter_.error()));
    if (outcome == json::Splitter::Outcome::kValue) add(splitter_.value());
  }
  if (!error_ && !items_.empty()) push_step(now);
  is_finished_ = true;
  end_if_done();
}

void PushStream::give_up(Error error) {
  if (!is_first_step_) error.detail += fmt::format("; the first {} jobs are stored", first_index_);
  if (!error_) error_ = std::move(error);
  is_finished_ = true;
  end_if_done();
}

void PushStream::push_step(Moment now) {
  auto step = std::make_shared<Step>();
  step->first_index = first_index_;
  // A job that is wrong has an error as its result; the others go to the queue together.
  std::vector<Fields> fields;
  fields.reserve(items_.size());
  std::vector<PushRequest> jobs;
  for (const Item& item : items_) {
    Result<Fields> read =
        Fields::of_object({std::string_view(texts_).substr(item.begin, item.size), item.type});
    PushRequest job;
    if (read.ok()) {
      fields.push_back(std::move(*read));
      if (const auto topic = fields.back().text("topic")) job.topic = *topic;
      job.body = read_body(fields.back());
      read_job(fields.back(), job);
      Status status = fields.back().finish();
      if (status.ok()) status = access_.check(caller_, only(Scope::kPush), job.topic);
      if (status.ok() && job.unique_across_topics) status = access_.check_unique(caller_);
      step->problems.push_back(std::move(status));
    } else {
      step->problems.emplace_back(read.error());
    }
    step->topics.emplace_back(job.topic);
    if (step->problems.back().ok()) jobs.push_back(std::move(job));
  }
  first_index_ += items_.size();
  items_.clear();
  ++steps_running_;
  queue_.push(now, jobs, [self = shared_from_this(), step](const Result<PushReport>& report) {
    self->answered(*step, report);
  });
  texts_.clear();
  if (first_index_ > step->problems.size()) outcome_.is_complete = false;
  is_first_step_ = false;
}

void PushStream::answered(const Step& step, const Result<PushReport>& report) {
  --steps_running_;
  if (!report.ok()) {
    if (!error_) error_ = report.error();
  } else {
    size_t next = 0;
    for (size_t i = 0; i < step.problems.size(); ++i) {
      const bool was_pushed = step.problems[i].ok();
      note_result(step.first_index + i, step.topics[i],
                  was_pushed ? report->jobs[next++] : Result<PushReceipt>(step.problems[i].error()));
    }
  }
  end_if_done();
  if (tell_) tell_();
}

void PushStream::note_result(uint64_t index, std::string_view topic, const Result<PushReceipt>& result) {
  ++(result.ok() ? outcome_.pushed : outcome_.failed);
  if (outcome_.is_complete) {
    if (!all_.empty()) all_ += ',';
    json::Writer json(all_);
    json.begin_object();
    write_result(json, topic, result);
    json.end_object();
  }
  if (result.ok() || failures_shown_ == kMostFailuresShown) return;
  ++failures_shown_;
  if (!failures_.empty()) failures_ += ',';
  json::Writer json(failures_);
  json.begin_object().key("index").number(index);
  write_result(json, topic, result);
  json.end_object();
}

void PushStream::end_if_done() {
  if (!is_finished_ || steps_running_ > 0 || !done_) return;
  outcome_.results = fmt::format("[{}]", outcome_.is_complete ? all_ : failures_);
  const Done done = std::exchange(done_, nullptr);
  if (error_) {
    done(*error_);
  } else {
    done(std::move(outcome_));
  }
}

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

bool EventStream::may_go_on(const api::Access& access, const api::Caller& caller) {
  return access.check_all(caller, only(Scope::kRead)).ok();
}

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
  std::erase_if(streams_, [&](const std::weak_ptr<Stream>& each) {
    const std::shared_ptr<Stream> stream = each.lock();
    if (stream == nullptr) return true;
    const Moment wanted = stream->watch(now);
    next = std::min(next, wanted);
    return wanted == kNever;
  });
  return next;
}

// ---- news of single jobs

namespace {

/// Of output that was not sent; nothing is read for a listener that has more.
constexpr size_t kMostUnsentNews = 256 * 1024;

void write_news(std::string& out, const NewsItem& item) {
  json::Writer json(out);
  json.begin_object().key("news").text(name_of(item.kind)).key("at").text(format_moment(item.at));
  json.key("topic").text(item.topic);
  if (item.id.empty()) {
    json.key("jobs").number(item.count);
  } else {
    json.key("id").text(item.id);
  }
  if (!item.group.empty()) json.key("group").text(item.group);
  if (item.state) json.key("state").text(name_of(*item.state));
  if (item.attempt > 0) json.key("attempt").number(uint64_t{item.attempt});
  if (item.due) json.key("due_at").text(format_moment(*item.due));
  if (!item.reason.empty()) json.bytes("error", item.reason);
  json.end_object();
}

}  // namespace

NewsStream::NewsStream(Conversation& conversation, std::shared_ptr<NewsListener> listener, Moment now,
                       Millis interval)
    : conversation_(std::static_pointer_cast<Conversation>(conversation.shared_from_this())),
      listener_(std::move(listener)),
      interval_(interval),
      next_(now),
      sign_of_life_(now) {}  // the cursor is sent at once

bool NewsStream::may_go_on(const api::Access& access, const api::Caller& caller) {
  if (!access.check_scope(caller, only(Scope::kRead)).ok()) return false;
  listener_->set_patterns(access.patterns_of(caller));
  return true;
}

Moment NewsStream::watch(Moment now) {
  const std::shared_ptr<Conversation> conversation = conversation_.lock();
  if (conversation == nullptr || !conversation->can_stream()) return kNever;
  if (now < next_ && next_ <= now + interval_) return next_;  // the clock may have been set back
  next_ = now + interval_;
  if (conversation->is_behind(kMostUnsentNews)) return next_;
  std::string& out = conversation->output();
  const size_t before = out.size();
  listener_->read(
      [&out](const NewsListener::Read& read) {
        append_event(out, "missed", read.missed > 0 ? fmt::format("{{\"at_most\":{}}}", read.missed) : "{}");
      },
      [&out](const NewsItem& item, std::string& rendered) {
        if (rendered.empty()) write_news(rendered, item);
        append_event(out, "job", rendered);
      });
  // The cursor comes last: events without data of their own change only what the client comes back with.
  const bool is_told = out.size() != before;
  if (is_told || now >= sign_of_life_) {
    fmt::format_to(std::back_inserter(out), "id: {}\n{}\n", listener_->cursor(),
                   is_told ? "" : ": still here\n");
    sign_of_life_ = now + kSignOfLife;
    conversation->on_streamed();
  }
  return next_;
}

}  // namespace delayq::http
