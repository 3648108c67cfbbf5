// POP: the one command that may wait.
#include <algorithm>
#include <array>

#include "api/resp/conversation.h"
#include "queue/job_headers.h"
#include "queue/job_options.h"

namespace delayq::resp {

namespace {

constexpr std::array<std::string_view, 5> kOptions{"COUNT", "WAIT", "LEASE", "AUTOACK", "HEADERS"};

bool is_option(std::string_view word) {
  return std::any_of(kOptions.begin(), kOptions.end(),
                     [&](std::string_view name) { return same_word(word, name); });
}

/// The number of values is a constant, so that "*6" is not computed for each job.
template <bool kWithHeaders>
void write_job(Writer& writer, const TakenJob& taken) {
  writer.array(kWithHeaders ? 7 : 6);
  writer.bulk(taken.lease);
  writer.bulk(taken.job.topic);
  writer.bulk(taken.job.id);
  writer.bulk(taken.job.body);
  writer.integer(taken.job.attempts);
  writer.integer(to_unix_ms(taken.job.due));
  if constexpr (kWithHeaders) write_headers(writer, decode_job_options(taken.job.options).headers);
}

void write_job_fields(Writer& writer, const TakenJob& taken) {
  const JobOptions options = decode_job_options(taken.job.options);
  const std::vector<JobHeader> headers = visible_headers(options.headers);
  size_t fields = 5;
  for (const bool there : {!options.content_type.empty(), !headers.empty()}) fields += there ? 1 : 0;
  if (!taken.lease.empty()) fields += 2;
  writer.map(fields);
  if (!taken.lease.empty()) {
    field(writer, "lease", taken.lease);
    field(writer, "lease_until_ms", taken.job.until);
  }
  field(writer, "topic", taken.job.topic);
  field(writer, "id", taken.job.id);
  field(writer, "body", taken.job.body);
  if (!options.content_type.empty()) field(writer, "content_type", options.content_type);
  field(writer, "attempt", uint64_t{taken.job.attempts});
  field(writer, "due_ms", taken.job.due);
  if (headers.empty()) return;
  writer.bulk("headers");
  write_headers(writer, options.headers);
}

}  // namespace

Status Conversation::read_pop_options(Arguments& arguments, PopRequest& request, PopForm& form) {
  bool with_headers = false;
  bool with_fields = false;
  while (!arguments.empty()) {
    Status status;
    if (arguments.take_word("COUNT")) {
      status = keep(arguments.small_number("COUNT"), request.count);
    } else if (arguments.take_word("WAIT")) {
      status = keep(arguments.duration("WAIT"), request.wait);
    } else if (arguments.take_word("LEASE")) {
      status = keep(arguments.duration("LEASE"), request.lease);
    } else if (arguments.take_word("AUTOACK")) {
      request.auto_ack = true;
    } else if (arguments.take_word("HEADERS")) {
      with_headers = true;
    } else if (arguments.take_word("FIELDS")) {  // a topic, unless it is behind another option
      with_fields = true;
    } else {
      break;
    }
    if (!status.ok()) return status;
  }
  form = with_fields ? PopForm::kFields : with_headers ? PopForm::kWithHeaders : PopForm::kPlain;
  return {};
}

void Conversation::write_jobs(Writer& writer, std::span<const TakenJob> jobs, PopForm form) {
  writer.array(jobs.size());
  for (const TakenJob& taken : jobs) {
    switch (form) {
      case PopForm::kPlain:
        write_job<false>(writer, taken);
        break;
      case PopForm::kWithHeaders:
        write_job<true>(writer, taken);
        break;
      case PopForm::kFields:
        write_job_fields(writer, taken);
        break;
    }
  }
}

/// Pops that ask the queue together, until all of them are answered.
struct Conversation::Pops {
  std::vector<std::string> topics;
  PopRequest each;  ///< without its topics
  PopForm form = PopForm::kPlain;
  ReplyPlace place{};
  uint32_t left = 0;  ///< not answered yet
  size_t done = 0;    ///< answered
};

/// Consecutive pops with the same arguments ask the queue once, for as many jobs as all of them want.
Status Conversation::pop(Arguments& arguments) {
  const std::span<const std::string_view> words = arguments.left();
  const bool is_same = batch_ == BatchKind::kPop &&
                       std::equal(words.begin(), words.end(), pop_words_.begin(), pop_words_.end());
  if (is_same && (pop_count_ + 1) * uint64_t{pop_.count} <= Limits::kPopJobs) {
    arguments = Arguments({});
    ++pop_count_;
    return {};
  }
  flush();
  pop_topics_.assign(1, arguments.take());
  while (!arguments.empty() && !is_option(arguments.front())) pop_topics_.push_back(arguments.take());
  pop_ = PopRequest{};
  if (Status status = read_pop_options(arguments, pop_, pop_form_); !status.ok() || !arguments.empty())
    return status;
  for (const std::string_view topic : pop_topics_) {
    if (Status status = front_.access.check(caller_, only(Scope::kConsume), topic); !status.ok())
      return status;
  }
  pop_.topics = pop_topics_;
  pop_count_ = 1;
  if (transaction_)
    pop_.wait = Millis::zero();  // as in Redis: the next commands of the same EXEC cannot wait
  if (pop_.wait > Millis::zero()) {
    ask(pop_, pop_form_);
    return {};
  }
  pop_words_.assign(words.begin(), words.end());
  batch_ = BatchKind::kPop;
  return {};
}

void Conversation::flush_pops() {
  if (pop_count_ == 1) return ask(pop_, pop_form_);
  auto pops = std::make_shared<Pops>();
  pops->topics.assign(pop_topics_.begin(), pop_topics_.end());
  pops->each = pop_;
  pops->form = pop_form_;
  pops->place = reserve(pop_count_);
  pops->left = pop_count_;
  ask_together(pops);
}

void Conversation::ask(const PopRequest& request, PopForm form) {
  const ReplyPlace place = reserve();
  const auto popped = [this, place, form](const Result<PopAnswer>& result) {
    answer(place, [&](Writer& writer) {
      if (!result.ok()) return write_error(writer, result.error());
      write_jobs(writer, result->jobs, form);
    });
  };
  const Status status = ask_for_jobs(now_, request, place, popped);
  if (!status.ok()) popped(status.error());
}

void Conversation::ask_together(const std::shared_ptr<Pops>& pops) {
  const std::vector<std::string_view> topics(pops->topics.begin(), pops->topics.end());
  PopRequest all = pops->each;
  all.topics = topics;
  all.count = pops->each.count * pops->left;
  const Status status =
      ask_for_jobs(clock_(), all, pops->place,
                   [this, pops](const Result<PopAnswer>& result) { popped_together(pops, result); });
  if (!status.ok()) popped_together(pops, status.error());
}

void Conversation::popped_together(const std::shared_ptr<Pops>& pops, const Result<PopAnswer>& popped) {
  if (connection_ == nullptr) return;
  const uint32_t count = pops->each.count;
  std::span<const TakenJob> jobs;
  if (popped.ok()) jobs = popped->jobs;
  const auto write = [&](Writer& writer, size_t) {
    if (!popped.ok()) return write_error(writer, popped.error());
    const size_t share = std::min<size_t>(count, jobs.size());
    write_jobs(writer, jobs.first(share), pops->form);
    jobs = jobs.subspan(share);
  };
  const size_t served = (jobs.size() + count - 1) / count;
  if (popped.ok() && popped->is_cut && served < pops->left) {
    // There are more jobs than one answer may have: the pops that got none ask again.
    replies_.extend(pops->place,
                    [&](std::string& out) { write_replies(out, pops->place, pops->done, served, write); });
    replies_.promise(pops->place, 0);
    pops->left -= static_cast<uint32_t>(served);
    pops->done += served;
    paused_pops_.push_back(pops);
    go_on();
  } else {
    replies_.fill(pops->place,
                  [&](std::string& out) { write_replies(out, pops->place, pops->done, pops->left, write); });
    asked_.erase(pops->place);
  }
  connection_->on_output();
}

bool Conversation::go_on() {
  if (connection_ == nullptr) return false;
  while (!paused_pops_.empty() && connection_->may_hold(held())) {
    const std::shared_ptr<Pops> next = std::move(paused_pops_.front());
    paused_pops_.erase(paused_pops_.begin());
    ask_together(next);
  }
  return !paused_pops_.empty();
}

}  // namespace delayq::resp
