// Any record: refused with a reason, or a push whose id, time and carried record are right, and the same when
// it is read again. The input is lines: the value, then "name:value" of each header.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/kafka/record_job.h"
#include "queue/job_headers.h"
#include "queue/job_options.h"

namespace {

using delayq::intake::Rules;

delayq::kafka::InputRecord record_of(std::string_view text) {
  delayq::kafka::InputRecord record;
  record.topic = "orders";
  record.partition = 1;
  record.offset = static_cast<int64_t>(text.size());
  if (text.size() % 2 == 0) record.timestamp = delayq::from_unix_ms(1'700'000'000'000);
  bool is_first = true;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const size_t colon = line.find(':');
    if (is_first) {
      record.value = line;
    } else if (colon == std::string_view::npos) {
      record.headers.push_back({line, std::nullopt});
    } else {
      record.headers.push_back({line.substr(0, colon), line.substr(colon + 1)});
    }
    is_first = false;
  }
  return record;
}

/// Any bytes as stored headers: what consumers see is within the bounds, and is the same when it is stored
/// again.
void check_bytes(std::string_view text) {
  (void)delayq::check_job_headers(text);
  (void)delayq::check_header_names(text);
  const auto visible = delayq::visible_headers(text);
  if (!delayq::are_of_record(text) && !delayq::check_job_headers(text).ok()) return;
  std::string encoded;
  delayq::encode_job_headers(visible, encoded);
  if (visible.empty() != encoded.empty()) __builtin_trap();
  if (!visible.empty() && !delayq::check_job_headers(encoded).ok()) __builtin_trap();
  if (delayq::visible_headers(encoded) != visible) __builtin_trap();
}

void check(const delayq::kafka::InputRecord& record, const Rules& rules) {
  delayq::Arena texts;
  const auto job = job_of(record, rules, texts);
  if (!job.ok()) {
    if (job.error().detail.empty()) __builtin_trap();
    return;
  }
  if (!job->id || (job->delay && job->at)) __builtin_trap();
  if (job->delay && *job->delay < delayq::Millis::zero()) __builtin_trap();
  if (rules.carries) {
    const auto carried = delayq::decode_job_headers(job->options.headers);
    if (!carried || !carried->is_record || carried->headers.size() > record.headers.size() + 1)
      __builtin_trap();
    check_bytes(job->options.headers);
  }
  if (!delayq::check_job_options(job->options).ok()) __builtin_trap();
  delayq::Arena more;
  const auto again = job_of(record, rules, more);
  if (!again.ok() || again->at != job->at || *again->id != *job->id) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const delayq::kafka::InputRecord record = record_of(text);
  Rules rules;
  check(record, rules);
  rules.retry = delayq::intake::RetryRule{5, delayq::ExponentialBackoff{}};
  check(record, rules);
  rules.carries = false;
  rules.delays_from_arrival = true;
  check(record, rules);
  check_bytes(text);
  return 0;
}
