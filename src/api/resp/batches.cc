// The verbs of jobs, except POP: push, ack, nack, extend, cancel, reschedule. Consecutive commands of one
// kind go to the queue as one batch.
#include <algorithm>

#include <fmt/format.h>

#include "api/resp/conversation.h"
#include "api/verbs.h"
#include "core/text.h"
#include "queue/job_headers.h"
#include "queue/job_options.h"

namespace delayq::resp {

namespace {

constexpr size_t kLargestBatch = 4096;
/// The size of an id, a moment, an outcome, or an error.
constexpr size_t kShortReply = 512;
static_assert(kLargestBatch <= Limits::kBatchJobs);

/// The error of item `i`, or null. When the whole batch failed, every item has that error.
template <class T>
const Error* error_of(const Result<std::vector<T>>& results, size_t i) {
  if (!results.ok()) return &results.error();
  return (*results)[i].ok() ? nullptr : &(*results)[i].error();
}

}  // namespace

void Conversation::begin_batch(BatchKind kind) {
  if (batch_ != kind) flush();
  batch_ = kind;
}

bool Conversation::continues_batch(std::span<const std::string_view> words) const {
  if (words.empty()) return true;
  switch (batch_) {
    case BatchKind::kNack:
      return same_word(words[0], "NACK");
    case BatchKind::kPop:
      return (pop_topics_.size() == 1 && !host_.queue.has_parts()) ||
             (same_word(words[0], "POP") &&
              std::equal(words.begin() + 1, words.end(), pop_words_.begin(), pop_words_.end()));
    case BatchKind::kSetSchedule:
      return sets_another_schedule(words);
    default:
      return true;
  }
}

Conversation::ReplyPlace Conversation::reserve_for(size_t commands) {
  return reserve(commands, commands * kShortReply);
}

void Conversation::flush() {
  switch (std::exchange(batch_, BatchKind::kNone)) {
    case BatchKind::kNone:
      return;
    case BatchKind::kPush:
      return flush_pushes();
    case BatchKind::kPop:
      return flush_pops();
    case BatchKind::kAck:
      return flush_acks();
    case BatchKind::kNack:
      return flush_nacks();
    case BatchKind::kExtend:
      return flush_extends();
    case BatchKind::kCancel:
      return flush_cancels();
    case BatchKind::kReschedule:
      return flush_reschedules();
    case BatchKind::kSetSchedule:
      return flush_schedules();
  }
}

// ---- push

Status Conversation::push(Arguments& arguments) {
  begin_batch(BatchKind::kPush);
  // Filled where it is: a request is large, and copying it would be seen in the rate of pushes.
  const Status status = read_push(arguments, pushes_.emplace_back());
  if (!status.ok() || !arguments.empty()) {  // behind an unknown option: the caller reports it
    pushes_.pop_back();
    if (!with_fields_.empty() && with_fields_.back() == pushes_.size()) with_fields_.pop_back();
    if (pushes_.empty()) batch_ = BatchKind::kNone;
    return status;
  }
  if (!headers_.empty() || !callback_headers_.empty()) take_headers(pushes_.back().options);
  if (pushes_.size() >= kLargestBatch) flush();
  return {};
}

Status Conversation::read_push(Arguments& arguments, PushRequest& job) {
  headers_.clear();
  callback_headers_.clear();
  job.topic = arguments.take();
  const Result<Millis> delay = arguments.duration("delay");
  if (!delay.ok()) return delay.error();
  job.delay = *delay;
  job.body = arguments.take();
  while (!arguments.empty()) {
    const size_t before = arguments.size();
    if (Status status = push_options(arguments, job); !status.ok()) return status;
    if (arguments.size() == before) return {};
  }
  if (job.at) {
    if (*job.delay != Millis::zero())
      return invalid("delay", "delay: must be 0 when there is an AT: a job falls due at one time only");
    job.delay.reset();
  }
  return {};
}

Status Conversation::push_options(Arguments& arguments, PushRequest& job) {
  if (arguments.take_word("ID")) return keep(arguments.text("ID"), job.id);
  if (arguments.take_word("AT")) return keep(arguments.moment("AT"), job.at);
  const size_t before = arguments.size();
  if (Status status = job_options(arguments, job); !status.ok() || arguments.size() < before) return status;
  for (const auto& [word, policy] :
       {std::pair{"REPLACE", OnConflict::kReplace}, {"KEEP", OnConflict::kKeep}}) {
    if (!arguments.take_word(word)) continue;
    if (job.on_conflict != OnConflict::kReject && job.on_conflict != policy)
      return invalid("REPLACE and KEEP: give one of them");
    job.on_conflict = policy;
  }
  if (arguments.take_word("FIELDS")) want_fields(pushes_.size());
  if (!arguments.take_word("UNIQUE")) return {};
  job.unique_across_topics = true;
  return front_.access.check_unique(caller_);
}

Status Conversation::job_options(Arguments& arguments, PushRequest& job) {
  if (arguments.take_word("PRI")) return keep(arguments.small_number("PRI"), job.priority);
  if (arguments.take_word("ATTEMPTS")) return keep(arguments.small_number("ATTEMPTS"), job.options.attempts);
  if (arguments.take_word("BACKOFF")) return keep(arguments.backoff("BACKOFF"), job.options.backoff);
  if (arguments.take_word("LEASE")) return keep(arguments.duration("LEASE"), job.options.lease);
  if (arguments.take_word("GROUP")) return keep(arguments.text("GROUP"), job.group);
  if (arguments.take_word("CALLBACK")) return keep(arguments.text("CALLBACK"), job.options.callback);
  if (arguments.take_word("METHOD")) return keep(arguments.text("METHOD"), job.options.method);
  if (arguments.take_word("FORMAT")) {
    const Result<std::string_view> word = arguments.text("FORMAT");
    if (!word.ok()) return word.error();
    const Result<CallbackFormat> format = parse_callback_format(*word);
    if (!format.ok()) return invalid("FORMAT", "FORMAT: " + format.error().detail);
    job.options.format = *format;
    return {};
  }
  if (arguments.take_word("CALLBACKHEADER")) {
    if (arguments.size() < 2)
      return invalid("CALLBACKHEADER", "CALLBACKHEADER: a name and a value are needed behind it");
    const std::string_view name = arguments.take();
    if (name.find(':') != std::string_view::npos)
      return invalid("CALLBACKHEADER", fmt::format("CALLBACKHEADER: the name {} has a colon", quote(name)));
    return add_header_line(fmt::format("{}: {}", name, arguments.take()), callback_headers_);
  }
  if (arguments.take_word("HEADER")) {
    if (arguments.size() < 2) return invalid("HEADER", "HEADER: a name and a value are needed behind it");
    const std::string_view name = arguments.take();
    headers_.push_back({name, arguments.take()});
  }
  return {};
}

void Conversation::take_headers(JobOptions& options) {
  if (!headers_.empty()) {
    std::string encoded;
    encode_job_headers(headers_, encoded);
    headers_.clear();
    options.headers = texts_.emplace_front(std::move(encoded));
  }
  if (!callback_headers_.empty())
    options.callback_headers = texts_.emplace_front(std::exchange(callback_headers_, {}));
}

void Conversation::want_fields(size_t items) {
  if (with_fields_.empty() || with_fields_.back() != items - 1) with_fields_.push_back(items - 1);
}

namespace {

void write_receipt(Writer& writer, const PushReceipt& receipt) {
  writer.map(4);
  field(writer, "result", name_of(receipt.outcome));
  field(writer, "id", receipt.id);
  field(writer, "state", name_of(receipt.state));
  field(writer, "due_ms", receipt.due);
}

void write_receipt(Writer& writer, const NackReceipt& receipt) {
  writer.map(receipt.retry_at ? 2 : 1);
  field(writer, "result", name_of(receipt.outcome));
  if (receipt.retry_at) field(writer, "retry_ms", *receipt.retry_at);
}

bool has(const std::vector<size_t>& sorted, size_t i) {
  return !sorted.empty() && std::binary_search(sorted.begin(), sorted.end(), i);
}

}  // namespace

void Conversation::flush_pushes() {
  host_.queue.push(now_, pushes_,
                   [self = self(), place = reserve_for(pushes_.size()), count = pushes_.size(),
                    with_fields = std::exchange(with_fields_, {})](const Result<PushReport>& report) {
                     self->answer_each(place, count, [&](Writer& writer, size_t i) {
                       if (!report.ok()) return write_error(writer, report.error());
                       const Result<PushReceipt>& receipt = report->jobs[i];
                       if (!receipt.ok()) return write_error(writer, receipt.error());
                       if (has(with_fields, i)) return write_receipt(writer, *receipt);
                       writer.bulk(receipt->id);
                     });
                   });
  pushes_.clear();
  texts_.clear();
}

// ---- what a lease allows

Status Conversation::ack(Arguments& arguments) {
  begin_batch(BatchKind::kAck);
  if (acks_.size() + arguments.size() > kLargestBatch) {
    flush();
    if (arguments.size() > Limits::kBatchJobs)
      return invalid("lease", fmt::format("lease: at most {} at once", Limits::kBatchJobs));
    batch_ = BatchKind::kAck;
  }
  acks_per_command_.push_back(static_cast<uint32_t>(arguments.size()));
  while (!arguments.empty()) acks_.push_back({.lease = arguments.take()});
  return {};
}

void Conversation::flush_acks() {
  const ReplyPlace place = reserve_for(acks_per_command_.size());
  host_.queue.ack(now_, acks_,
                  [self = self(), place,
                   per_command = std::move(acks_per_command_)](const Result<std::vector<Status>>& results) {
                    size_t next = 0;
                    self->answer_each(place, per_command.size(), [&](Writer& writer, size_t i) {
                      if (!results.ok()) return write_error(writer, results.error());
                      write_acked(writer, std::span(*results).subspan(next, per_command[i]));
                      next += per_command[i];
                    });
                  });
  acks_.clear();
  acks_per_command_.clear();
}

/// Writes how many leases were acked. A stale lease is not counted; any other error is the reply.
void Conversation::write_acked(Writer& writer, std::span<const Status> results) {
  int64_t acked = 0;
  for (const Status& status : results) {
    if (!status.ok() && status.error().code != ErrorCode::kStaleLease)
      return write_error(writer, status.error());
    acked += status.ok() ? 1 : 0;
  }
  writer.integer(acked);
}

Status Conversation::nack(Arguments& arguments) {
  NackItem item;
  item.lease = arguments.take();
  bool fields = false;
  while (!arguments.empty()) {
    Status status;
    if (arguments.take_word("DELAY")) {
      status = keep(arguments.duration("DELAY"), item.delay);
    } else if (arguments.take_word("FIELDS")) {
      fields = true;
    } else if (arguments.take_word("REASON")) {
      status = keep(arguments.text("REASON"), item.reason);
    } else if (arguments.take_word("DEAD")) {
      item.dead = true;
    } else {
      return {};
    }
    if (!status.ok()) return status;
  }
  begin_batch(BatchKind::kNack);
  nacks_.push_back(item);
  if (fields) want_fields(nacks_.size());
  if (nacks_.size() >= kLargestBatch) flush();
  return {};
}

void Conversation::flush_nacks() {
  host_.queue.nack(now_, nacks_,
                   [self = self(), place = reserve_for(nacks_.size()), count = nacks_.size(),
                    with_fields = std::exchange(with_fields_, {})](
                       const Result<std::vector<Result<NackReceipt>>>& results) {
                     self->answer_each(place, count, [&](Writer& writer, size_t i) {
                       if (const Error* error = error_of(results, i)) return write_error(writer, *error);
                       if (has(with_fields, i)) return write_receipt(writer, *(*results)[i]);
                       writer.simple("OK");
                     });
                   });
  nacks_.clear();
}

/// Not batched: workers release many leases with one command, and seldom.
Status Conversation::release(Arguments& arguments) {
  if (arguments.size() > Limits::kBatchJobs)
    return invalid("lease", fmt::format("lease: at most {} at once", Limits::kBatchJobs));
  std::vector<GiveBackItem> items;
  while (!arguments.empty()) items.push_back({.lease = arguments.take(), .at = now_});
  host_.queue.give_back(now_, items, respond<uint64_t>([](Writer& writer, uint64_t given) {
                          writer.integer(static_cast<int64_t>(given));
                        }));
  return {};
}

Status Conversation::extend(Arguments& arguments) {
  ExtendItem item;
  item.lease = arguments.take();
  if (!arguments.empty()) {
    if (Status status = keep(arguments.duration("duration"), item.duration); !status.ok()) return status;
  }
  begin_batch(BatchKind::kExtend);
  extends_.push_back(item);
  if (extends_.size() >= kLargestBatch) flush();
  return {};
}

void Conversation::flush_extends() {
  host_.queue.extend(now_, extends_,
                     [self = self(), place = reserve_for(extends_.size()),
                      count = extends_.size()](const Result<std::vector<Result<Moment>>>& results) {
                       self->answer_each(place, count, [&](Writer& writer, size_t i) {
                         if (const Error* error = error_of(results, i)) return write_error(writer, *error);
                         writer.integer(to_unix_ms(*(*results)[i]));
                       });
                     });
  extends_.clear();
}

// ---- by id

Status Conversation::cancel(Arguments& arguments) {
  if (arguments.size() == 1) {
    flush();
    host_.queue.cancel_by_id(now_, arguments.take(),
                             respond<CancelOutcome>([](Writer& writer, CancelOutcome outcome) {
                               writer.simple(name_of(outcome));
                             }));
    return {};
  }
  begin_batch(BatchKind::kCancel);
  const std::string_view topic = arguments.take();
  cancels_.push_back({topic, arguments.take()});
  if (cancels_.size() >= kLargestBatch) flush();
  return {};
}

void Conversation::flush_cancels() {
  host_.queue.cancel(now_, cancels_,
                     [self = self(), place = reserve_for(cancels_.size()),
                      count = cancels_.size()](const Result<std::vector<Result<CancelOutcome>>>& results) {
                       self->answer_each(place, count, [&](Writer& writer, size_t i) {
                         if (const Error* error = error_of(results, i)) return write_error(writer, *error);
                         writer.simple(name_of(*(*results)[i]));
                       });
                     });
  cancels_.clear();
}

Status Conversation::reschedule(Arguments& arguments) {
  RescheduleItem item;
  item.job.topic = arguments.take();
  item.job.id = arguments.take();
  Status status = arguments.take_word("AT") ? keep(arguments.moment("AT"), item.at)
                                            : keep(arguments.duration("delay"), item.delay);
  if (!status.ok() || !arguments.empty()) return status;
  begin_batch(BatchKind::kReschedule);
  reschedules_.push_back(item);
  if (reschedules_.size() >= kLargestBatch) flush();
  return {};
}

void Conversation::flush_reschedules() {
  host_.queue.reschedule(
      now_, reschedules_,
      [self = self(), place = reserve_for(reschedules_.size()),
       count = reschedules_.size()](const Result<std::vector<Result<RescheduleOutcome>>>& results) {
        self->answer_each(place, count, [&](Writer& writer, size_t i) {
          if (const Error* error = error_of(results, i)) return write_error(writer, *error);
          write_rescheduled(writer, *(*results)[i]);
        });
      });
  reschedules_.clear();
}

void Conversation::write_rescheduled(Writer& writer, RescheduleOutcome outcome) {
  if (outcome == RescheduleOutcome::kMoved) return writer.simple("OK");
  write_error(writer, api::refusal_of(outcome));
}

}  // namespace delayq::resp
