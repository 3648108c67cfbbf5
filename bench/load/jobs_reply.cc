#include "bench/load/jobs_reply.h"

#include <charconv>

namespace delayq::bench {

JobsReply::JobsReply(std::string_view reply) : rest_(reply) {
  int64_t count = 0;
  broken_ = !number_after('*', count) || count < 0;
  size_ = broken_ ? 0 : static_cast<size_t>(count);
}

bool JobsReply::number_after(char sign, int64_t& value) {
  if (rest_.empty() || rest_[0] != sign) return false;
  const char* const end = rest_.data() + rest_.size();
  const auto [stop, problem] = std::from_chars(rest_.data() + 1, end, value);
  if (problem != std::errc{} || end - stop < 2 || stop[0] != '\r') return false;
  rest_.remove_prefix(static_cast<size_t>(stop - rest_.data()) + 2);
  return true;
}

bool JobsReply::bulk(std::string_view& text) {
  int64_t size = 0;
  if (!number_after('$', size) || size < 0) return false;
  const auto bytes = static_cast<size_t>(size);
  if (bytes + 2 > rest_.size()) return false;
  text = rest_.substr(0, bytes);
  rest_.remove_prefix(bytes + 2);
  return true;
}

bool JobsReply::next(PoppedJob& job) {
  if (broken_ || taken_ == size_) return false;
  int64_t fields = 0;
  if (!number_after('*', fields) || fields != 6 || !bulk(job.lease) || !bulk(job.topic) || !bulk(job.id) ||
      !bulk(job.body) || !number_after(':', job.attempt) || !number_after(':', job.due_ms)) {
    broken_ = true;
    return false;
  }
  ++taken_;
  return true;
}

}  // namespace delayq::bench
