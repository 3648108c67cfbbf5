#include "bench/rivals/beanstalkd_dialect.h"

#include <charconv>

#include <fmt/format.h>

namespace delayq::bench {

namespace {

constexpr std::string_view kReserved = "RESERVED ";

/// put <priority> <delay, s> <time to run, s> <bytes>
std::string put(int delay, size_t body) {
  return fmt::format("put 0 {} 60 {}\r\n{}\r\n", delay, body, std::string(body, 'b'));
}

}  // namespace

BeanstalkdDialect::BeanstalkdDialect(size_t body)
    : body_(body), ready_(put(0, body)), far_(put(3'600, body)) {}

Result<Reply> BeanstalkdDialect::first_reply(std::string_view input) const {
  const size_t end = input.find('\n');
  if (end == std::string_view::npos) return Reply{};
  const std::string_view line = input.substr(0, end);
  size_t size = end + 1;
  if (line.starts_with(kReserved)) {  // RESERVED <id> <bytes>\r\n<data>\r\n
    const size_t space = line.rfind(' ');
    size_t bytes = 0;
    std::from_chars(line.data() + space + 1, line.data() + line.size(), bytes);
    size += bytes + 2;
    return Reply{size <= input.size() ? size : 0, false};
  }
  const bool is_good =
      line.starts_with("INSERTED ") || line.starts_with("DELETED") || line.starts_with("TIMED_OUT");
  return Reply{size, !is_good};
}

void BeanstalkdDialect::append_push(size_t, uint64_t, std::string& out) const { out += ready_; }

void BeanstalkdDialect::append_pop(size_t, std::string& out) const { out += "reserve-with-timeout 0\r\n"; }

size_t BeanstalkdDialect::append_acks(std::string_view reply, std::string& out) const {
  if (!reply.starts_with(kReserved)) return 0;
  const std::string_view id =
      reply.substr(kReserved.size(), reply.find(' ', kReserved.size()) - kReserved.size());
  fmt::format_to(std::back_inserter(out), "delete {}\r\n", id);
  return 1;
}

}  // namespace delayq::bench
