#include "bench/load/delayq_dialect.h"

#include <fmt/format.h>

#include "bench/load/jobs_reply.h"
#include "core/random.h"
#include "resp/value.h"
#include "resp/writer.h"

namespace delayq::bench {

namespace {

constexpr size_t kIdBytes = 20;
constexpr std::string_view kDelay = "1h";

/// A command without its last argument of `last` bytes, which is appended with finish().
std::string all_but_last(const std::vector<std::string_view>& words, size_t last) {
  std::string out;
  resp::Writer writer(out, resp::Version::k2);
  writer.array(words.size() + 1);
  for (const std::string_view word : words) writer.bulk(word);
  fmt::format_to(std::back_inserter(out), "${}\r\n", last);
  return out;
}

void finish(std::string_view prepared, std::string_view last, std::string& out) {
  out += prepared;
  out += last;
  out += "\r\n";
}

}  // namespace

DelayqDialect::DelayqDialect(Shape shape) : shape_(std::move(shape)) {
  const std::string body(shape_.body, 'b');
  for (size_t i = 0; i < shape_.topics; ++i)
    topics_.push_back(shape_.topics == 1 ? shape_.topic : fmt::format("{}-{}", shape_.topic, i));
  for (const std::string& topic : topics_) {
    Prepared& one = prepared_.emplace_back();
    resp::append_command(one.push_ready, {"PUSH", topic, "0", body});
    resp::append_command(one.push_far, {"PUSH", topic, kDelay, body});
    one.push_named = all_but_last({"PUSH", topic, kDelay, body, "ID"}, kIdBytes);
    one.cancel = all_but_last({"CANCEL", topic}, kIdBytes);
    resp::append_command(one.pop, {"POP", topic});
    // PUSH topic 0 <due, then the rest of the body> AT <seconds, which have 14 bytes>
    std::string dated;
    resp::append_command(dated, {"PUSH", topic, "0", body, "AT", "1234567890.123"});
    const size_t place = dated.find("\r\n" + body + "\r\n") + 2;
    if (body.size() < kDueBytes) continue;
    one.push_dated = dated.substr(0, place);
    one.push_dated_end = dated.substr(place + kDueBytes, dated.size() - place - kDueBytes - 16);
  }
}

std::string DelayqDialect::id(uint64_t number) { return fmt::format("job:{:016x}", mix64(number)); }

std::string DelayqDialect::due_text(Moment due) { return fmt::format("{:013}", to_unix_ms(due)); }

Result<Reply> DelayqDialect::first_reply(std::string_view input) const {
  const Result<std::optional<size_t>> size = resp::reply_size(input);
  if (!size.ok()) return size.error();
  return Reply{size->value_or(0), input[0] == '-' || input[0] == '!'};
}

void DelayqDialect::append_push(size_t lane, uint64_t, std::string& out) const { out += of(lane).push_ready; }
void DelayqDialect::append_pop(size_t lane, std::string& out) const { out += of(lane).pop; }

size_t DelayqDialect::append_acks(std::string_view reply, std::string& out) const {
  JobsReply jobs(reply);
  PoppedJob job;
  size_t count = 0;
  for (; jobs.next(job); ++count) resp::append_command(out, {"ACK", job.lease});
  return count;
}

void DelayqDialect::append_far_push(uint64_t number, std::string& out) const { out += of(number).push_far; }

void DelayqDialect::append_named_push(uint64_t number, std::string& out) const {
  finish(of(number).push_named, id(number), out);
}

void DelayqDialect::append_cancel(uint64_t number, std::string& out) const {
  finish(of(number).cancel, id(number), out);
}

void DelayqDialect::append_dated_push(uint64_t number, Moment due, std::string& out) const {
  const Prepared& prepared = of(number);
  const std::string text = due_text(due);
  out += prepared.push_dated;
  out += text;
  out += prepared.push_dated_end;
  fmt::format_to(std::back_inserter(out), "{}.{}\r\n", text.substr(0, 10), text.substr(10));
}

std::string DelayqDialect::pop_all(size_t count, std::string_view wait) const {
  std::vector<std::string_view> words{"POP"};
  words.insert(words.end(), topics_.begin(), topics_.end());
  const std::string number = std::to_string(count);
  words.insert(words.end(), {"COUNT", number, "WAIT", wait});
  std::string out;
  resp::append_command(out, words);
  return out;
}

}  // namespace delayq::bench
