// Looking at jobs and topics, the verbs of whole topics, and EXPORT, IMPORT and BACKUP.
#include <algorithm>
#include <array>
#include <cstdint>

#include <fmt/format.h>

#include "api/resp/conversation.h"
#include "api/transfer/line.h"
#include "api/verbs.h"
#include "core/text.h"
#include "queue/job_headers.h"
#include "queue/job_options.h"
#include "queue/settings_table.h"

namespace delayq::resp {

namespace {

/// A job as a map; fields without a value are left out.
void write_job(Writer& writer, const Job& job, bool with_body, std::string_view delivery_problem = {}) {
  const bool has_until = job.until != Moment{};
  const bool has_hand_over = job.handed_over != Moment{};
  const bool has_callback = job.outlet == Outlet::kCallback;
  const JobOptions options = with_body || has_callback ? decode_job_options(job.options) : JobOptions{};
  const bool has_headers = with_body && !options.headers.empty();
  const bool has_type = with_body && !options.content_type.empty();
  const bool has_header_names = has_callback && !options.callback_headers.empty();
  size_t fields = 7;
  for (const bool there :
       {with_body, has_type, !job.group.empty(), has_until, has_callback, has_header_names,
        !job.outcome.empty(), job.cancel_requested, has_headers, !delivery_problem.empty(), has_hand_over}) {
    fields += there ? 1 : 0;
  }
  writer.map(fields);
  field(writer, "topic", job.topic);
  field(writer, "id", job.id);
  field(writer, "state", name_of(job.state));
  if (with_body) field(writer, "body", job.body);
  if (has_type) field(writer, "content_type", options.content_type);
  field(writer, "due_ms", job.due);
  field(writer, "pushed_ms", job.pushed);
  field(writer, "attempts", uint64_t{job.attempts});
  field(writer, "priority", uint64_t{job.priority});
  if (!job.group.empty()) field(writer, "group", job.group);
  if (has_hand_over) field(writer, "handed_over_ms", job.handed_over);
  if (has_until) field(writer, "until_ms", job.until);
  if (has_callback) field(writer, "callback", options.callback);
  if (has_header_names) write_callback_header_names(writer, options.callback_headers);
  if (!job.outcome.empty()) field(writer, "outcome", job.outcome);
  if (job.cancel_requested) field(writer, "cancel_requested", uint64_t{1});
  if (has_headers) {
    writer.bulk("headers");
    write_headers(writer, options.headers);
  }
  if (!delivery_problem.empty()) field(writer, "delivery_problem", delivery_problem);
}

constexpr size_t kCountFields = kJobStateCount + kTallyCount + 3;

size_t count_fields(const TopicCounts& counts) {
  return kCountFields + (counts.oldest_ready ? 1 : 0) + (counts.oldest_lease ? 1 : 0);
}

void write_counts(Writer& writer, const TopicCounts& counts, const Tallies& tallies, const Lateness& lateness,
                  uint64_t waiters) {
  for (size_t i = 0; i < kJobStateCount; ++i)
    field(writer, name_of(static_cast<JobState>(i)), counts.by_state[i]);
  if (counts.oldest_ready) field(writer, "oldest_ready_ms", *counts.oldest_ready);
  if (counts.oldest_lease) field(writer, "oldest_lease_ms", *counts.oldest_lease);
  for (size_t i = 0; i < kTallyCount; ++i) field(writer, kTallyNames[i], tallies.of(static_cast<Tally>(i)));
  field(writer, "waiters", waiters);
  field(writer, "lateness_p50_ms", lateness.shown_quantile(0.5));
  field(writer, "lateness_p99_ms", lateness.shown_quantile(0.99));
}

void write_topic(Writer& writer, const TopicSummary& topic) {
  writer.map(count_fields(topic.counts) + 2);
  field(writer, "topic", topic.topic);
  write_counts(writer, topic.counts, topic.tallies, topic.lateness, topic.waiters);
  field(writer, "paused", uint64_t{topic.paused});
}

void write_totals(Writer& writer, const TotalStats& stats) {
  const auto& cold_bodies = stats.usage.cold_bodies;
  writer.map(count_fields(stats.counts) + 16 + (cold_bodies ? 1 : 0));
  write_counts(writer, stats.counts, stats.tallies, stats.lateness, stats.waiters);
  field(writer, "jobs", stats.usage.jobs);
  field(writer, "topics", stats.usage.topics);
  field(writer, "memory_bytes", stats.usage.memory_bytes);
  field(writer, "disk_bytes", stats.usage.disk_bytes);
  field(writer, "live_bytes", stats.usage.live_bytes);
  field(writer, "disk_free", std::min<uint64_t>(stats.usage.disk_free, INT64_MAX));
  field(writer, "unsynced_bytes", stats.usage.unsynced_bytes);
  field(writer, "commits", stats.usage.commits);
  field(writer, "unanswered_bytes", stats.unanswered_bytes);
  if (cold_bodies) field(writer, "bodies_in_kafka", *cold_bodies);
  field(writer, "schedules", stats.usage.schedules);
  field(writer, "occurrences_made", stats.schedules.made);
  field(writer, "occurrences_skipped", stats.schedules.skipped);
  field(writer, "occurrences_missed", stats.schedules.missed);
  field(writer, "occurrences_refused", stats.schedules.refused);
  field(writer, "occurrences_lateness_p50_ms", stats.schedules.lateness.shown_quantile(0.5));
  field(writer, "occurrences_lateness_p99_ms", stats.schedules.lateness.shown_quantile(0.99));
}

/// Whether commands that select jobs have an option of this name.
bool is_selecting_option(std::string_view word) {
  static constexpr std::array<std::string_view, 8> kSelectingOptions{"ALL",   "COUNT",  "CURSOR", "ERROR",
                                                                     "LIMIT", "PREFIX", "STATE",  "TOPIC"};
  return std::any_of(kSelectingOptions.begin(), kSelectingOptions.end(),
                     [word](std::string_view option) { return same_word(word, option); });
}

void write_count(Writer& writer, uint64_t count) { writer.integer(static_cast<int64_t>(count)); }

}  // namespace

void write_headers(Writer& writer, std::string_view encoded) {
  const std::vector<JobHeader> headers = visible_headers(encoded);
  writer.map(headers.size());
  for (const JobHeader& header : headers) {
    writer.bulk(header.name);
    writer.bulk(header.value);
  }
}

void write_callback_header_names(Writer& writer, std::string_view lines) {
  const std::vector<JobHeader> headers = parse_header_lines(lines);
  writer.bulk("callback_header_names");
  writer.array(headers.size());
  for (const JobHeader& header : headers) writer.bulk(header.name);
}

Status Conversation::get(Arguments& arguments) {
  auto found = respond<std::optional<FoundJob>>(
      [&queue = host_.queue, now = now_](Writer& writer, const std::optional<FoundJob>& job) {
        if (!job) return writer.null();
        write_job(writer, job->job, true, queue.delivery_problem(now, job->job));
      });
  const std::string_view first = arguments.take();
  if (arguments.empty()) {
    host_.queue.find(now_, first, front_.access.topics_of(caller_), std::move(found));
  } else {
    host_.queue.get(now_, {first, arguments.take()}, std::move(found));
  }
  return {};
}

// ---- news of single jobs

namespace {

/// Of output that was not sent; nothing is read for a client that has more.
constexpr size_t kMostUnsentNews = 256 * 1024;

void write_news(Writer& writer, const NewsItem& item, std::string_view cursor) {
  size_t fields = 4;
  for (const bool there : {!item.group.empty(), item.state.has_value(), item.attempt > 0,
                           item.due.has_value(), !item.reason.empty()})
    fields += there ? 1 : 0;
  writer.push(3);
  writer.bulk("news");
  writer.bulk(cursor);
  writer.map(fields);
  field(writer, "news", name_of(item.kind));
  field(writer, "at_ms", item.at);
  field(writer, "topic", item.topic);
  if (item.id.empty()) {
    field(writer, "jobs", item.count);
  } else {
    field(writer, "id", item.id);
  }
  if (!item.group.empty()) field(writer, "group", item.group);
  if (item.state) field(writer, "state", name_of(*item.state));
  if (item.attempt > 0) field(writer, "attempt", item.attempt);
  if (item.due) field(writer, "due_ms", *item.due);
  if (!item.reason.empty()) field(writer, "error", item.reason);
}

}  // namespace

Status Conversation::news(Arguments& arguments) {
  if (arguments.take_word("STOP")) {
    if (!arguments.empty()) return {};
    news_.reset();
    reply([](Writer& writer) { writer.simple("OK"); });
    return {};
  }
  if (!arguments.take_word("START")) return {};  // not understood
  NewsFilter filter;
  std::string_view after;
  while (!arguments.empty()) {
    Status status;
    std::string_view text;
    if (arguments.take_word("OF")) {
      status = keep(arguments.text("OF"), text);
      if (status.ok()) status = keep(parse_news_kinds(text), filter.kinds);
    } else if (arguments.take_word("STATE")) {
      status = keep(arguments.text("STATE"), text);
      if (status.ok()) status = keep(parse_news_states(text), filter.states);
    } else if (arguments.take_word("TOPIC")) {
      status = keep(arguments.text("TOPIC"), filter.topic);
      if (status.ok()) status = front_.access.check(caller_, only(Scope::kRead), filter.topic);
    } else if (arguments.take_word("GROUP")) {
      status = keep(arguments.text("GROUP"), filter.group);
    } else if (arguments.take_word("AFTER")) {
      status = keep(arguments.text("AFTER"), after);
    } else {
      return {};
    }
    if (!status.ok()) return status;
  }
  if (version_ != Version::k3) return invalid("NEWS: push messages need RESP 3: send HELLO 3 first");
  if (news_ == nullptr && host_.feeds.is_full()) {
    return Error{ErrorCode::kOverloaded,
                 {},
                 fmt::format("too many connections get news: at most {} may", NewsFeeds::kMostFeeds),
                 std::chrono::seconds{15}};
  }
  filter.patterns = front_.access.patterns_of(caller_);
  Result<std::shared_ptr<NewsListener>> listener = host_.queue.listen(now_, std::move(filter), after);
  if (!listener.ok()) return listener.error();
  const bool is_new = news_ == nullptr;
  news_ = std::move(*listener);
  if (is_new) host_.feeds.add(self());
  reply([this](Writer& writer) { writer.bulk(news_->cursor()); });
  return {};
}

bool Conversation::send_news() {
  if (news_ == nullptr || connection_ == nullptr || is_over_) return false;
  if (replies_.is_amid_reply() || is_amid_exec() || connection_->unsent() > kMostUnsentNews ||
      replies_.output().size() > kMostUnsentNews)
    return true;
  Writer writer(replies_.output(), Version::k3);
  const size_t before = replies_.output().size();
  const Status allowed = front_.access.check_scope(caller_, only(Scope::kRead));
  if (!allowed.ok()) {
    writer.push(2);
    writer.bulk("news-ended");
    writer.bulk(allowed.error().detail);
    news_.reset();
  } else {
    news_->set_patterns(front_.access.patterns_of(caller_));
    news_->read(
        [&writer](const NewsListener::Read& read) {
          writer.push(2);
          writer.bulk("news-missed");
          writer.integer(static_cast<int64_t>(read.missed));
        },
        [&](const NewsItem& item, std::string&) { write_news(writer, item, news_->cursor()); });
  }
  if (replies_.output().size() != before) connection_->on_output();
  return news_ != nullptr;
}

void NewsFeeds::add(const std::shared_ptr<Conversation>& conversation) {
  const auto is_same = [&](const std::weak_ptr<Conversation>& each) { return each.lock() == conversation; };
  if (std::none_of(feeds_.begin(), feeds_.end(), is_same)) feeds_.push_back(conversation);
}

Moment NewsFeeds::tick(Moment now) {
  if (feeds_.empty()) return kNever;
  if (now < next_ && next_ <= now + kInterval) return next_;  // the clock may have been set back
  next_ = now + kInterval;
  std::erase_if(feeds_, [](const std::weak_ptr<Conversation>& each) {
    const std::shared_ptr<Conversation> conversation = each.lock();
    return conversation == nullptr || !conversation->send_news();
  });
  return feeds_.empty() ? kNever : next_;
}

Status Conversation::list(Arguments& arguments) {
  ListRequest request;
  request.topic = arguments.take();
  if (Status status = keep(arguments.state("state"), request.state); !status.ok()) return status;
  while (!arguments.empty()) {
    Status status;
    if (arguments.take_word("PREFIX")) {
      status = keep(arguments.text("PREFIX"), request.id_prefix);
    } else if (arguments.take_word("ERROR")) {
      status = keep(arguments.text("ERROR"), request.outcome_contains);
    } else if (arguments.take_word("DUEAFTER")) {
      status = keep(arguments.moment("DUEAFTER"), request.due.from);
    } else if (arguments.take_word("DUEBEFORE")) {
      status = keep(arguments.moment("DUEBEFORE"), request.due.before);
    } else if (arguments.take_word("CURSOR")) {
      status = keep(arguments.text("CURSOR"), request.cursor);
    } else if (arguments.take_word("COUNT")) {
      status = keep(arguments.small_number("COUNT"), request.limit);
    } else {
      return {};
    }
    if (!status.ok()) return status;
  }
  host_.queue.list(now_, request, respond<JobPage>([](Writer& writer, const JobPage& page) {
                     writer.array(2);
                     writer.bulk(page.cursor);
                     writer.array(page.jobs.size());
                     for (const Job& job : page.jobs) write_job(writer, job, false);
                   }));
  return {};
}

Status Conversation::forget(Arguments& arguments) {
  const std::string_view topic = arguments.take();
  const bool with_fields = arguments.take_word("FIELDS");
  if (!arguments.empty()) return {};  // not understood
  host_.queue.forget(now_, topic, respond<bool>([with_fields](Writer& writer, bool existed) {
                       if (!with_fields) return writer.simple("OK");
                       writer.map(1);
                       writer.bulk("existed");
                       writer.integer(existed ? 1 : 0);
                     }));
  return {};
}

Status Conversation::topics(Arguments& arguments) {
  constexpr uint32_t kPage = 100;
  const std::string_view cursor = arguments.empty() ? std::string_view() : arguments.take();
  uint32_t limit = kPage;
  if (!arguments.empty()) {
    if (Status status = keep(arguments.small_number("count"), limit); !status.ok()) return status;
  }
  const bool with_fields = arguments.take_word("FIELDS");
  if (!arguments.empty()) return {};  // not understood
  api::visible_topics(host_.queue, front_.access, caller_, now_, cursor, limit,
                      respond<TopicSummaries>([with_fields](Writer& writer, const TopicSummaries& page) {
                        writer.array(2);
                        writer.bulk(page.cursor);
                        writer.array(page.topics.size());
                        for (const TopicSummary& topic : page.topics) {
                          if (with_fields) {
                            write_topic(writer, topic);
                            continue;
                          }
                          writer.array(kJobStateCount + 2);
                          writer.bulk(topic.topic);
                          for (const uint64_t count : topic.counts.by_state) write_count(writer, count);
                          writer.integer(topic.paused ? 1 : 0);
                        }
                      }));
  return {};
}

Status Conversation::stats(Arguments& arguments) {
  if (!arguments.empty()) {
    host_.queue.stats(now_, arguments.take(),
                      respond<TopicStats>([](Writer& writer, const TopicStats& stats) {
                        const bool has_problem = !stats.delivery_problem.empty();
                        writer.map(count_fields(stats.counts) + 1 + (has_problem ? 1 : 0));
                        write_counts(writer, stats.counts, stats.tallies, stats.lateness, stats.waiters);
                        field(writer, "paused", uint64_t{stats.settings.paused});
                        if (has_problem) field(writer, "delivery_problem", stats.delivery_problem);
                      }));
    return {};
  }
  host_.queue.totals(now_, respond<TotalStats>(write_totals));
  return {};
}

Status Conversation::redrive(Arguments& arguments) {
  const std::string_view topic = arguments.take();
  if (arguments.empty()) {
    host_.queue.redrive_all(now_, topic, respond<uint64_t>(write_count));
    return {};
  }
  if (arguments.size() == 2 && arguments.take_word("ERROR")) {
    host_.queue.redrive_by_error(now_, topic, arguments.take(), respond<uint64_t>(write_count));
    return {};
  }
  const bool is_marked = arguments.take_word("ID");
  if (is_marked && arguments.empty()) return invalid("ID", "ID: a value is missing behind it");
  std::vector<std::string_view> ids;
  while (!arguments.empty()) {
    // A misplaced option, taken for an id, would be a job that does not exist, and the mistake would go
    // unnoticed.
    if (!is_marked && is_selecting_option(arguments.front())) return {};
    ids.push_back(arguments.take());
  }
  host_.queue.redrive(now_, topic, ids, respond<uint64_t>(write_count));
  return {};
}

Status Conversation::purge(Arguments& arguments) {
  const std::string_view topic = arguments.take();
  std::optional<JobState> state;
  if (!arguments.empty()) {
    if (Status status = keep(arguments.state("state"), state); !status.ok()) return status;
  }
  host_.queue.purge(now_, topic, state, respond<uint64_t>(write_count));
  return {};
}

Status Conversation::unset(Arguments& arguments) {
  const std::string_view topic = arguments.take();
  Settings settings = arguments.empty() ? Settings() : host_.queue.settings(topic);
  while (!arguments.empty()) {
    if (Status status = unset_setting(settings, lowered(arguments.take())); !status.ok()) return status;
  }
  host_.queue.set_settings(now_, topic, std::move(settings),
                           respond<void>([](Writer& writer) { writer.simple("OK"); }));
  return {};
}

namespace {

void write_settings(Writer& writer, const std::vector<NamedSetting>& all,
                    std::span<const std::string> wanted) {
  std::vector<const NamedSetting*> shown;
  for (const NamedSetting& one : all) {
    const auto is_wanted = [&one](const std::string& name) { return name == one.row || name == one.name; };
    if (wanted.empty() || std::any_of(wanted.begin(), wanted.end(), is_wanted)) shown.push_back(&one);
  }
  writer.map(shown.size());
  for (const NamedSetting* const one : shown) {
    if (const auto* const number = std::get_if<uint64_t>(&one->value)) {
      field(writer, one->name, *number);
    } else {
      field(writer, one->name, std::get<std::string>(one->value));
    }
  }
}

/// OK if it is the name of a setting, or of a part of one.
Status check_setting_name(std::string_view name) {
  const auto& table = topic_settings();
  const SettingValues every = table.effective_values({});
  for (const NamedSetting& one : setting_words(every)) {
    if (name == one.row || name == one.name) return {};
  }
  return unknown_setting(table.rows(), name);
}

}  // namespace

Status Conversation::settings(Verb verb, Arguments& arguments) {
  if (verb == Verb::kSettings) return {};  // not understood
  if (verb == Verb::kSettingsUnset) return unset(arguments);
  const auto& table = topic_settings();
  const std::string_view topic = arguments.take();
  if (verb == Verb::kSettingsGet) {
    if (Status status = topic == kDefaultsName ? Status() : check_topic(topic); !status.ok()) return status;
    const bool only_own = arguments.take_word("OWN");
    std::vector<std::string> wanted;
    while (!arguments.empty()) {
      wanted.push_back(lowered(arguments.take()));
      if (Status status = check_setting_name(wanted.back()); !status.ok()) return status;
    }
    const SettingValues values = only_own ? table.values(host_.queue.settings(topic))
                                          : table.effective_values(host_.queue.effective_settings(topic));
    reply([&](Writer& writer) { write_settings(writer, setting_words(values), wanted); });
    return {};
  }
  SettingValues change(table.rows());
  while (!arguments.empty()) {
    const std::string name = lowered(arguments.take());
    if (arguments.empty()) return invalid(name, fmt::format("{}: a value is missing behind it", quote(name)));
    if (Status status = set_from_text(change, name, arguments.take()); !status.ok()) return status;
  }
  host_.queue.set_settings(now_, topic, overlay(host_.queue.settings(topic), table.own(change)),
                           respond<void>([](Writer& writer) { writer.simple("OK"); }));
  return {};
}

Status Conversation::cancel_group(Arguments& arguments) {
  const std::string_view group = arguments.take();
  const bool with_fields = arguments.take_word("FIELDS");
  if (!arguments.empty()) return {};  // not understood
  host_.queue.cancel_group(
      now_, group, front_.access.topics_of(caller_),
      respond<GroupCancelAnswer>([with_fields](Writer& writer, const GroupCancelAnswer& answer) {
        if (!with_fields) return write_count(writer, answer.cancelled + answer.reserved);
        writer.map(2);
        field(writer, "cancelled", uint64_t{answer.cancelled});
        field(writer, "reserved", uint64_t{answer.reserved});
      }));
  return {};
}

// ---- everything at once

namespace {

void write_page(Writer& writer, const ExportPage& page) {
  writer.array(2);
  writer.bulk(page.cursor);
  writer.array(page.items.size());
  std::string line;
  for (const ExportItem& item : page.items) {
    line.clear();
    transfer::write_line(line, item);
    line.pop_back();  // a bulk string needs no end of line
    writer.bulk(line);
  }
}

}  // namespace

Status Conversation::export_page(Arguments& arguments) {
  ExportRequest request;
  while (!arguments.empty()) {
    Status status;
    if (arguments.take_word("CURSOR")) {
      status = keep(arguments.text("CURSOR"), request.cursor);
    } else if (arguments.take_word("TOPIC")) {
      status = keep(arguments.text("TOPIC"), request.topic);
    } else if (arguments.take_word("STATE")) {
      status = keep(arguments.state("STATE"), request.state);
    } else if (arguments.take_word("COUNT")) {
      status = keep(arguments.small_number("COUNT"), request.limit);
    } else {
      return {};
    }
    if (!status.ok()) return status;
  }
  host_.queue.export_page(now_, request, respond<ExportPage>(write_page));
  return {};
}

Status Conversation::import_lines(Arguments& arguments) {
  OnConflict on_conflict = OnConflict::kReject;
  if (arguments.take_word("REPLACE")) {
    on_conflict = OnConflict::kReplace;
  } else if (arguments.take_word("KEEP")) {
    on_conflict = OnConflict::kKeep;
  }
  std::vector<std::string_view> lines;
  while (!arguments.empty()) lines.push_back(arguments.take());
  if (lines.empty()) return invalid("line", "line: is missing");
  transfer::import_lines(
      host_.queue, now_, lines, on_conflict,
      respond<transfer::ImportResults>([](Writer& writer, const transfer::ImportResults& results) {
        writer.array(results.size());
        for (const Result<RestoreOutcome>& result : results) {
          if (result.ok()) {
            writer.simple(name_of(*result));
          } else {
            write_error(writer, result.error());
          }
        }
      }));
  return {};
}

Status Conversation::backup(Arguments& arguments) {
  host_.queue.backup(now_, arguments.take(),
                     respond<BackupReport>([](Writer& writer, const BackupReport& report) {
                       writer.map(4);
                       writer.bulk("path");
                       writer.bulk(report.path);
                       writer.bulk("bytes");
                       writer.integer(static_cast<int64_t>(report.bytes));
                       writer.bulk("files");
                       writer.integer(static_cast<int64_t>(report.files));
                       writer.bulk("jobs");
                       writer.integer(static_cast<int64_t>(report.jobs));
                     }));
  return {};
}

}  // namespace delayq::resp
