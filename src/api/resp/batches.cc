// Commands that came together and are of one kind go to the queue as one batch.
#include <algorithm>

#include <fmt/format.h>

#include "api/resp/conversation.h"

namespace delayq::resp {

namespace {

constexpr size_t kLargestBatch = 4096;
static_assert(kLargestBatch <= Limits::kBatchJobs);

/// Writes each item's own words; when all of the batch failed, everybody gets that error.
template <class T, class Write, class WriteError>
void write_each(Writer& writer, const Result<std::vector<T>>& results, size_t count, Write write,
                WriteError write_error) {
  for (size_t i = 0; i < count; ++i) {
    if (!results.ok()) {
      write_error(writer, results.error());
    } else if (!(*results)[i].ok()) {
      write_error(writer, (*results)[i].error());
    } else {
      write((*results)[i]);
    }
  }
}

}  // namespace

void Conversation::begin_batch(Batch kind) {
  if (batch_ != kind) flush();
  batch_ = kind;
}

bool Conversation::continues_batch(std::span<const std::string_view> words) const {
  if (words.empty()) return true;
  switch (batch_) {
    case Batch::kNack:
      return same_word(words[0], "NACK");
    case Batch::kPop:
      return pop_topics_.size() == 1 ||
             (same_word(words[0], "POP") &&
              std::equal(words.begin() + 1, words.end(), pop_words_.begin(), pop_words_.end()));
    default:
      return true;
  }
}

void Conversation::flush() {
  switch (std::exchange(batch_, Batch::kNone)) {
    case Batch::kNone:
      return;
    case Batch::kPush:
      return flush_pushes();
    case Batch::kPop:
      return flush_pops();
    case Batch::kAck:
      return flush_acks();
    case Batch::kNack:
      return flush_nacks();
    case Batch::kExtend:
      return flush_extends();
    case Batch::kCancel:
      return flush_cancels();
    case Batch::kReschedule:
      return flush_reschedules();
  }
}

// ---- push

Status Conversation::push(Arguments& arguments) {
  PushRequest job;
  job.topic = arguments.take();
  const Result<Millis> delay = arguments.duration("delay");
  if (!delay.ok()) return delay.error();
  job.delay = *delay;
  job.body = arguments.take();
  while (!arguments.empty()) {
    const size_t before = arguments.size();
    if (Status status = push_options(arguments, job); !status.ok()) return status;
    if (arguments.size() == before) return {};  // not understood: the caller says so
  }
  if (job.at) {
    if (*job.delay != Millis::zero())
      return invalid("delay: must be 0 when there is an AT: a job falls due at one time only");
    job.delay.reset();
  }
  begin_batch(Batch::kPush);
  pushes_.push_back(std::move(job));
  if (pushes_.size() >= kLargestBatch) flush();
  return {};
}

Status Conversation::push_options(Arguments& arguments, PushRequest& job) {
  if (arguments.take_word("ID")) return keep(arguments.text("ID"), job.id);
  if (arguments.take_word("AT")) return keep(arguments.moment("AT"), job.at);
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
    if (!format.ok()) return invalid("FORMAT: " + format.error().detail);
    job.options.format = *format;
    return {};
  }
  if (arguments.take_word("REPLACE")) job.on_conflict = OnConflict::kReplace;
  if (arguments.take_word("KEEP")) job.on_conflict = OnConflict::kKeep;
  if (arguments.take_word("UNIQUE")) job.unique_across_topics = true;
  return {};
}

void Conversation::flush_pushes() {
  host_.queue.push(
      now_, pushes_,
      [self = self(), place = replies_.reserve(), count = pushes_.size()](Result<PushReport> report) {
        self->answer(place, [&](Writer& writer) {
          for (size_t i = 0; i < count; ++i) {
            if (!report.ok()) {
              write_error(writer, report.error());
            } else if (const Result<PushReceipt>& receipt = report->jobs[i]; receipt.ok()) {
              writer.bulk(receipt->id);
            } else {
              write_error(writer, receipt.error());
            }
          }
        });
      });
  pushes_.clear();
}

// ---- what a lease allows

Status Conversation::ack(Arguments& arguments) {
  begin_batch(Batch::kAck);
  if (acks_.size() + arguments.size() > kLargestBatch) {
    flush();
    if (arguments.size() > Limits::kBatchJobs)
      return invalid(fmt::format("lease: at most {} at once", Limits::kBatchJobs));
    batch_ = Batch::kAck;
  }
  acks_per_command_.push_back(static_cast<uint32_t>(arguments.size()));
  while (!arguments.empty()) acks_.push_back({.lease = arguments.take()});
  return {};
}

void Conversation::flush_acks() {
  host_.queue.ack(now_, acks_,
                  [self = self(), place = replies_.reserve(),
                   per_command = std::move(acks_per_command_)](Result<std::vector<Status>> results) {
                    self->answer(place, [&](Writer& writer) {
                      size_t next = 0;
                      for (const uint32_t leases : per_command) {
                        if (!results.ok()) {
                          write_error(writer, results.error());
                          continue;
                        }
                        write_acked(writer, std::span(*results).subspan(next, leases));
                        next += leases;
                      }
                    });
                  });
  acks_.clear();
  acks_per_command_.clear();
}

/// How many were acked. A lease that is stale is not; what went wrong otherwise must not pass for that.
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
  while (!arguments.empty()) {
    Status status;
    if (arguments.take_word("DELAY")) {
      status = keep(arguments.duration("DELAY"), item.delay);
    } else if (arguments.take_word("REASON")) {
      status = keep(arguments.text("REASON"), item.reason);
    } else if (arguments.take_word("DEAD")) {
      item.dead = true;
    } else {
      return {};
    }
    if (!status.ok()) return status;
  }
  begin_batch(Batch::kNack);
  nacks_.push_back(item);
  if (nacks_.size() >= kLargestBatch) flush();
  return {};
}

void Conversation::flush_nacks() {
  host_.queue.nack(now_, nacks_,
                   [self = self(), place = replies_.reserve(),
                    count = nacks_.size()](const Result<std::vector<Result<NackReceipt>>>& results) {
                     self->answer(place, [&](Writer& writer) {
                       write_each(
                           writer, results, count, [&](const auto&) { writer.simple("OK"); }, write_error);
                     });
                   });
  nacks_.clear();
}

Status Conversation::extend(Arguments& arguments) {
  ExtendItem item;
  item.lease = arguments.take();
  if (!arguments.empty()) {
    if (Status status = keep(arguments.duration("duration"), item.duration); !status.ok()) return status;
  }
  begin_batch(Batch::kExtend);
  extends_.push_back(item);
  if (extends_.size() >= kLargestBatch) flush();
  return {};
}

void Conversation::flush_extends() {
  host_.queue.extend(now_, extends_,
                     [self = self(), place = replies_.reserve(),
                      count = extends_.size()](const Result<std::vector<Result<Moment>>>& results) {
                       self->answer(place, [&](Writer& writer) {
                         write_each(
                             writer, results, count,
                             [&](const auto& until) { writer.integer(to_unix_ms(*until)); }, write_error);
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
  begin_batch(Batch::kCancel);
  const std::string_view topic = arguments.take();
  cancels_.push_back({topic, arguments.take()});
  if (cancels_.size() >= kLargestBatch) flush();
  return {};
}

void Conversation::flush_cancels() {
  host_.queue.cancel(now_, cancels_,
                     [self = self(), place = replies_.reserve(),
                      count = cancels_.size()](const Result<std::vector<Result<CancelOutcome>>>& results) {
                       self->answer(place, [&](Writer& writer) {
                         write_each(
                             writer, results, count,
                             [&](const auto& outcome) { writer.simple(name_of(*outcome)); }, write_error);
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
  begin_batch(Batch::kReschedule);
  reschedules_.push_back(item);
  if (reschedules_.size() >= kLargestBatch) flush();
  return {};
}

void Conversation::flush_reschedules() {
  host_.queue.reschedule(
      now_, reschedules_,
      [self = self(), place = replies_.reserve(),
       count = reschedules_.size()](const Result<std::vector<Result<RescheduleOutcome>>>& results) {
        self->answer(place, [&](Writer& writer) {
          write_each(
              writer, results, count, [&](const auto& outcome) { write_rescheduled(writer, *outcome); },
              write_error);
        });
      });
  reschedules_.clear();
}

void Conversation::write_rescheduled(Writer& writer, RescheduleOutcome outcome) {
  if (outcome == RescheduleOutcome::kMoved) return writer.simple("OK");
  write_error(writer, api::refusal_of(outcome));
}

}  // namespace delayq::resp
