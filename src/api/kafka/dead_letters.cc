#include "api/kafka/dead_letters.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/moment.h"

namespace delayq::intake {

namespace {

constexpr Millis kFirstRest{100};
constexpr Millis kLongestRest = std::chrono::seconds{10};
/// A shortened letter keeps a key of so many bytes at most.
constexpr size_t kShortKeyBytes = 1'024;

/// Whether the topic refuses this record, and may accept a smaller one.
bool is_about_the_record(const Error& error) {
  return error.code == ErrorCode::kTooLarge || error.code == ErrorCode::kInvalid;
}

}  // namespace

std::string DeadLetters::topic_of(std::string_view kafka_topic) const {
  return topic_.empty() ? fmt::format("{}{}", kafka_topic, kDeadLetterSuffix) : topic_;
}

void DeadLetters::write(TakenRecord record, const Error& why) {
  bytes_ += record.bytes;
  ++record.partition->under_way;
  waiting_.push_back({std::move(record), std::string(traits_of(why.code).name), why.detail});
}

Status DeadLetters::send(const Letter& letter, uint64_t token) {
  if (producer_ == nullptr || producer_->is_broken()) {
    auto opened = open_();
    if (!opened.ok()) return opened.error();
    producer_ = std::move(*opened);
    // The old one reports nothing any more. Its records may be in the topic; a second copy does no harm.
    for (auto& each : in_flight_) waiting_.push_back(std::move(each.second));
    in_flight_.clear();
    if (producer_->is_broken())
      return Error{ErrorCode::kUnavailable, "kafka", std::string(producer_->last_error())};
  }
  const kafka::InputRecord& record = letter.record.record;
  const std::string topic = topic_of(record.topic);
  const std::string partition = std::to_string(record.partition);
  const std::string offset = std::to_string(record.offset);
  std::vector<kafka::Header> headers;
  const bool is_short = !letter.shortened.empty();
  headers.reserve(record.headers.size() + 7);
  if (!is_short) {
    for (const kafka::InputHeader& header : record.headers) headers.push_back({header.name, header.value});
  }
  headers.push_back({"delayq-error", letter.reason});
  headers.push_back({"delayq-error-code", letter.code});
  headers.push_back({"delayq-intake", intake_});
  headers.push_back({"delayq-origin-topic", record.topic});
  headers.push_back({"delayq-origin-partition", partition});
  headers.push_back({"delayq-origin-offset", offset});
  if (is_short) headers.push_back({"delayq-shortened", letter.shortened});
  kafka::Record written{.topic = topic};
  if (!is_short || (record.key && record.key->size() <= kShortKeyBytes)) written.key = record.key;
  if (is_short) {
    written.value = std::string_view();
  } else {
    written.value = record.value;
    written.timestamp = record.timestamp;
  }
  written.headers = headers;
  return producer_->send(written, token);
}

bool DeadLetters::poll(Moment now, std::vector<TakenRecord>& written) {
  if (producer_ == nullptr) return false;
  confirmed_.clear();
  const bool is_busy = producer_->poll(confirmed_);
  for (const kafka::Confirmation& each : confirmed_) {
    const auto found = in_flight_.find(each.token);
    if (found == in_flight_.end()) continue;
    Letter letter = std::move(found->second);
    in_flight_.erase(found);
    if (each.error != nullptr) {
      fail(std::move(letter), *each.error, now);
      continue;
    }
    rest_ = Millis::zero();
    bytes_ -= letter.record.bytes;
    --letter.record.partition->under_way;
    letter.record.partition->stuck -= letter.is_stuck ? 1 : 0;
    written.push_back(std::move(letter.record));
  }
  if (size() == 0) trouble_.clear();
  return is_busy;
}

Moment DeadLetters::tick(Moment now) {
  next_try_ = std::min(next_try_, now + kLongestRest);  // the clock may have been set back
  // Only as many as wait now: what fails comes back to the end.
  for (size_t left = waiting_.size(); left > 0 && now >= next_try_; --left) {
    Letter letter = std::move(waiting_.front());
    waiting_.pop_front();
    const uint64_t token = ++last_token_;
    if (const Status status = send(letter, token); !status.ok()) {
      fail(std::move(letter), status.error(), now);
    } else {
      in_flight_.emplace(token, std::move(letter));
    }
  }
  return waiting_.empty() ? kNever : next_try_;
}

void DeadLetters::fail(Letter letter, const Error& why, Moment now) {
  if (letter.record.partition->is_gone) {
    bytes_ -= letter.record.bytes;
    return;
  }
  if (is_about_the_record(why) && letter.shortened.empty()) {
    letter.shortened = why.detail;
    waiting_.push_back(std::move(letter));
    return;
  }
  // A full buffer is emptied by and by; nothing is wrong then.
  const bool is_wrong = why.code != ErrorCode::kOverloaded;
  if (is_wrong) trouble_ = fmt::format("{}: {}", topic_of(letter.record.record.topic), why.detail);
  if (is_wrong && !letter.is_stuck) {
    letter.is_stuck = true;
    ++letter.record.partition->stuck;
  }
  if (now >= next_try_) {
    rest_ = std::clamp(2 * rest_, kFirstRest, kLongestRest);
    next_try_ = now + rest_;
  }
  waiting_.push_back(std::move(letter));
}

void DeadLetters::forget_gone() {
  std::erase_if(waiting_, [this](const Letter& letter) {
    if (!letter.record.partition->is_gone) return false;
    bytes_ -= letter.record.bytes;
    return true;
  });
  if (size() == 0) trouble_.clear();
}

}  // namespace delayq::intake
