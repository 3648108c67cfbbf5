// POP: the one command that may wait.
#include <algorithm>
#include <array>

#include "api/resp/conversation.h"

namespace delayq::resp {

namespace {

constexpr std::array<std::string_view, 4> kOptions{"COUNT", "WAIT", "LEASE", "AUTOACK"};

bool is_option(std::string_view word) {
  return std::any_of(kOptions.begin(), kOptions.end(),
                     [&](std::string_view name) { return same_word(word, name); });
}

Status read_options(Arguments& arguments, PopRequest& request) {
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
    } else {
      break;
    }
    if (!status.ok()) return status;
  }
  return {};
}

void write_job(Writer& writer, const TakenJob& taken) {
  writer.array(6);
  writer.bulk(taken.lease);
  writer.bulk(taken.job.topic);
  writer.bulk(taken.job.id);
  writer.bulk(taken.job.body);
  writer.integer(taken.job.attempts);
  writer.integer(to_unix_ms(taken.job.due));
}

}  // namespace

/// Pops that are all the same and came together ask the queue once, for as many jobs as all of them want.
Status Conversation::pop(Arguments& arguments) {
  const std::span<const std::string_view> words = arguments.left();
  const bool is_same =
      batch_ == Batch::kPop && std::equal(words.begin(), words.end(), pop_words_.begin(), pop_words_.end());
  if (is_same && (pop_count_ + 1) * uint64_t{pop_.count} <= Limits::kPopJobs) {
    arguments = Arguments({});
    ++pop_count_;
    return {};
  }
  flush();
  pop_topics_.assign(1, arguments.take());
  while (!arguments.empty() && !is_option(arguments.front())) pop_topics_.push_back(arguments.take());
  pop_ = PopRequest{};
  if (Status status = read_options(arguments, pop_); !status.ok() || !arguments.empty()) return status;
  for (const std::string_view topic : pop_topics_) {
    if (Status status = front_.access.check(caller_, only(Scope::kConsume), topic); !status.ok())
      return status;
  }
  pop_.topics = pop_topics_;
  pop_count_ = 1;
  if (pop_.wait > Millis::zero()) {
    ask(pop_, 1);
    return {};
  }
  pop_words_.assign(words.begin(), words.end());
  batch_ = Batch::kPop;
  return {};
}

void Conversation::flush_pops() {
  PopRequest all = pop_;
  all.count = pop_.count * pop_count_;
  ask(all, pop_count_);
}

void Conversation::ask(const PopRequest& request, uint32_t pops) {
  const Place place = replies_.reserve();
  const uint32_t count = request.count / pops;
  const Status status = ask_for_jobs(
      now_, request, place,
      [this, place, pops, count](const Result<PopAnswer>& answer) { popped(place, pops, count, answer); });
  if (!status.ok()) popped(place, pops, count, status.error());
}

void Conversation::popped(Place place, uint32_t pops, uint32_t count, const Result<PopAnswer>& popped) {
  answer(place, [&](Writer& writer) {
    std::span<const TakenJob> left;
    if (popped.ok()) left = popped->jobs;
    for (uint32_t i = 0; i < pops; ++i) {
      if (!popped.ok()) {
        write_error(writer, popped.error());
        continue;
      }
      const std::span<const TakenJob> jobs = left.first(std::min<size_t>(count, left.size()));
      left = left.subspan(jobs.size());
      writer.array(jobs.size());
      for (const TakenJob& taken : jobs) write_job(writer, taken);
    }
  });
}

}  // namespace delayq::resp
