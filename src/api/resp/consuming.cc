// POP: the one command that may wait.
#include <algorithm>
#include <array>

#include <fmt/format.h>

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
    if (arguments.take_word("COUNT")) {
      const Result<uint32_t> count = arguments.small_number("COUNT");
      if (!count.ok()) return count.error();
      request.count = *count;
    } else if (arguments.take_word("WAIT")) {
      const Result<Millis> wait = arguments.duration("WAIT");
      if (!wait.ok()) return wait.error();
      request.wait = *wait;
    } else if (arguments.take_word("LEASE")) {
      const Result<Millis> lease = arguments.duration("LEASE");
      if (!lease.ok()) return lease.error();
      request.lease = *lease;
    } else if (arguments.take_word("AUTOACK")) {
      request.auto_ack = true;
    } else {
      break;
    }
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

Status Conversation::pop(Arguments& arguments) {
  std::vector<std::string_view> topics{arguments.take()};
  while (!arguments.empty() && !is_option(arguments.front())) topics.push_back(arguments.take());
  PopRequest request;
  request.topics = topics;
  if (Status status = read_options(arguments, request); !status.ok() || !arguments.empty()) return status;

  const Place place = replies_.reserve();
  const WaiterId waiter = host_.queue.pop(
      now_, request,
      [self = shared_from_this(), place](Result<PopAnswer> answer) { self->popped(place, answer); });
  if (waiter == 0) return {};  // refused; it will hear of that
  pops_.emplace(place, waiter);
  if (request.wait > Millis::zero()) holds_up_ = place;
  return {};
}

void Conversation::popped(Place place, const Result<PopAnswer>& popped) {
  pops_.erase(place);
  answer(place, [&](Writer& writer) {
    if (!popped.ok()) return write_error(writer, popped.error());
    writer.array(popped->jobs.size());
    for (const TakenJob& taken : popped->jobs) write_job(writer, taken);
  });
  if (holds_up_ != place) return;
  holds_up_.reset();
  if (connection_ != nullptr) connection_->on_resume();
}

}  // namespace delayq::resp
