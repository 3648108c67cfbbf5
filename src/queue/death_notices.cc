#include "queue/death_notices.h"

#include <utility>

#include "core/encoding.h"
#include "core/moment.h"
#include "core/siphash.h"
#include "json/writer.h"
#include "queue/job_headers.h"
#include "queue/job_options.h"

namespace delayq {

namespace {

constexpr SipKey kNoticeKey{0x64656c617971206e, 0x6f74696365000000};

/// The same for the same attempt at the same job, at every server.
std::string notice_id(const Job& job) {
  std::string key;
  key.append(job.topic) += '\0';  // neither has such a byte
  key.append(job.id) += '\0';
  for (const int64_t part : {to_unix_ms(job.pushed), to_unix_ms(job.due), int64_t{job.attempts}})
    key.append(reinterpret_cast<const char*>(&part), sizeof part);
  const Hash128 hash = siphash128(kNoticeKey, key);
  return "dead-" + to_hex({reinterpret_cast<const char*>(&hash), sizeof hash});
}

/// What is told, as JSON.
std::string notice_body(const Job& job, std::string_view reason, Moment now, bool with_body) {
  std::string text;
  json::Writer json(text);
  json.begin_object().key("event").text("dead").key("topic").text(job.topic).key("id").text(job.id);
  if (with_body) {
    json::write_body_value(json, job.body);
  } else {
    json.key("body_left_out").boolean(true);
  }
  json.bytes("error", reason);
  json.key("attempts").number(uint64_t{job.attempts}).key("died_at").text(format_moment(now));
  json.key("due_at").text(format_moment(job.due)).key("pushed_at").text(format_moment(job.pushed));
  if (!job.group.empty()) json.key("group").text(job.group);
  const JobOptions options = decode_job_options(job.options);
  if (const auto headers = visible_headers(options.headers); !headers.empty()) {
    json.key("headers").begin_object();
    for (const JobHeader& header : headers) json.key(header.name).text(header.value);
    json.end_object();
  }
  json.end_object();
  return text;
}

}  // namespace

bool DeathNotices::are_wanted(const EffectiveSettings& settings, std::string_view topic) {
  return !settings.on_dead.empty() && settings.on_dead != topic;
}

void DeathNotices::announce(Death death, Reply<NackOutcome> reply) {
  waiting_.push_back(std::make_unique<Pending>(Pending{std::move(death), std::move(reply)}));
  begin_more();
}

void DeathNotices::begin_more() {
  while (running_ < kAtOnce && !waiting_.empty()) {
    PendingPtr next = std::move(waiting_.front());
    waiting_.pop_front();
    ++running_;
    read(std::move(next));
  }
}

void DeathNotices::read(PendingPtr pending) {
  const std::string name = pending->death.topic;
  const std::string lease = pending->death.lease;
  const LeaseRef ref{name, lease};
  context_.engine.held(context_.now, {&ref, 1}, true,
                       [this, pending = std::move(pending)](const Result<HeldJobs>& held) mutable {
                         if (!held.ok()) return end(std::move(pending), held.error());
                         const std::optional<Job>& job = held->jobs.front();
                         if (!job || job->cancel_requested || decode_job_options(job->options).is_notice)
                           return bury(std::move(pending));
                         const TopicPtr topic = context_.topics.open(job->topic, context_.now);
                         if (!are_wanted(*topic->settings, topic->name)) return bury(std::move(pending));
                         push(std::move(pending), topic, *job);
                       });
}

void DeathNotices::push(PendingPtr pending, const TopicPtr& topic, const Job& job) {
  const std::string to = topic->settings->on_dead;
  const bool is_called = is_url(to);
  const TopicPtr target = is_called ? topic : context_.topics.open(to, context_.now);
  target->last_used = context_.now;
  const std::string id = notice_id(job);
  std::string body = notice_body(job, pending->death.reason, context_.now, true);
  if (body.size() > context_.config.limits.body_bytes)
    body = notice_body(job, pending->death.reason, context_.now, false);
  JobOptions options;
  options.is_notice = true;
  if (is_called) options.callback = to;
  std::string encoded;
  encode_job_options(options, encoded);
  NewJob notice;
  notice.topic = target->name;
  notice.id = id;
  notice.body = body;
  notice.options = encoded;
  notice.due = context_.now;
  notice.priority = target->settings->priority;
  notice.on_conflict = OnConflict::kKeep;
  notice.outlet = outlet_of(options);
  context_.engine.push(context_.now, {&notice, 1},
                       [this, target, id,
                        pending = std::move(pending)](const Result<std::vector<PushAnswer>>& pushed) mutable {
                         if (!pushed.ok()) return end(std::move(pending), pushed.error());
                         if (pushed->front().outcome != PushOutcome::kKept) {
                           context_.topics.count(target.get(), Tally::kPushed, 1);
                           if (context_.news.is_on())
                             context_.news.note({.kind = NewsKind::kPushed,
                                                 .at = context_.now,
                                                 .topic = target->name,
                                                 .id = id,
                                                 .state = pushed->front().state,
                                                 .due = pushed->front().due});
                         }
                         bury(std::move(pending));
                       });
}

void DeathNotices::bury(PendingPtr pending) {
  const std::string topic = pending->death.topic;
  const std::string lease = pending->death.lease;
  const std::string reason = pending->death.reason;
  NackRequest request;
  request.lease = {topic, lease};
  request.keep = pending->death.keep;
  request.reason = reason;
  request.expired = pending->death.expired;
  context_.engine.nack(
      context_.now, {&request, 1},
      [this, pending = std::move(pending)](const Result<std::vector<NackOutcome>>& outcomes) mutable {
        if (!outcomes.ok()) return end(std::move(pending), outcomes.error());
        end(std::move(pending), outcomes->front());
      });
}

void DeathNotices::end(PendingPtr pending, Result<NackOutcome> outcome) {
  --running_;
  pending->reply(std::move(outcome));
  begin_more();
}

}  // namespace delayq
