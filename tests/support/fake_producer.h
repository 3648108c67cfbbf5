#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kafka/producer.h"

namespace delayq::support {

/// A Kafka that confirms records when the test says so.
class FakeProducer final : public kafka::Producer {
 public:
  struct Made {
    std::string topic;
    std::optional<std::string> key;
    std::optional<std::string> value;
    std::map<std::string, std::string> headers;  ///< "(none)" for one without a value
    uint64_t token = 0;
  };

  Status send(const kafka::Record& record, uint64_t token) override {
    if (refusal_) return *refusal_;
    if (open_.size() >= most_) return Error{ErrorCode::kOverloaded, "kafka", "full"};
    Made made{std::string(record.topic), {}, {}, {}, token};
    if (record.value) made.value = std::string(*record.value);
    if (record.key) made.key = std::string(*record.key);
    for (const kafka::Header& header : record.headers)
      made.headers.emplace(header.name, header.value.value_or("(none)"));
    open_.push_back(std::move(made));
    return {};
  }
  bool poll(std::vector<kafka::Confirmation>& confirmed) override {
    const auto ended = std::exchange(ended_, {});
    confirmed.insert(confirmed.end(), ended.begin(), ended.end());
    return !ended.empty();
  }
  void drop() override { fail_all(away()); }
  size_t outstanding() const override { return open_.size() + ended_.size(); }
  bool is_connected() const override { return connected_; }
  std::string_view last_error() const override { return "connection refused"; }
  bool is_broken() const override { return broken_; }

  static Error away() { return {ErrorCode::kUnavailable, "kafka", "timed out"}; }

  /// Records that are not confirmed.
  const std::deque<Made>& open() const { return open_; }
  /// The broker has the first open record.
  void confirm() { end(nullptr); }
  void confirm_all() {
    while (!open_.empty()) confirm();
  }
  /// The first open record fails.
  void fail(Error error) { end(std::make_shared<const Error>(std::move(error))); }
  void fail_all(const Error& error) {
    while (!open_.empty()) fail(error);
  }
  void set_connected(bool connected) { connected_ = connected; }
  void set_broken(bool broken) { broken_ = broken; }
  /// At most so many records are accepted.
  void set_most(size_t most) { most_ = most; }
  /// send() returns this.
  void set_refusal(std::optional<Error> refusal) { refusal_ = std::move(refusal); }

 private:
  void end(std::shared_ptr<const Error> error) {
    const bool is_written = error == nullptr;
    ended_.push_back(
        {open_.front().token, is_written ? 3 : -1, is_written ? next_offset_++ : -1, std::move(error)});
    open_.pop_front();
  }

  std::deque<Made> open_;
  std::vector<kafka::Confirmation> ended_;
  int64_t next_offset_ = 40;
  bool connected_ = true;
  bool broken_ = false;
  size_t most_ = 1'000'000;
  std::optional<Error> refusal_;
};

}  // namespace delayq::support
