#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kafka/consumer.h"
#include "kafka/producer.h"

namespace delayq::support {

/// A record with texts of its own.
struct RecordSpec {
  std::string topic = "orders";
  int32_t partition = 0;
  int64_t offset = 0;
  std::optional<std::string> key{};
  std::optional<std::string> value = "body";
  std::optional<Moment> timestamp{};
  std::vector<std::pair<std::string, std::optional<std::string>>> headers{};
};

/// `live` counts the records that exist.
inline kafka::InputRecord input_record(const RecordSpec& spec, std::shared_ptr<int> live = nullptr) {
  struct Held {
    RecordSpec spec;
    std::shared_ptr<int> live;
    ~Held() {
      if (live != nullptr) --*live;
    }
  };
  if (live != nullptr) ++*live;
  auto* const held = new Held{spec, std::move(live)};
  kafka::InputRecord record;
  record.storage = {held, [](void* each) { delete static_cast<Held*>(each); }};
  record.topic = held->spec.topic;
  record.partition = spec.partition;
  record.offset = spec.offset;
  if (held->spec.key) record.key = *held->spec.key;
  if (held->spec.value) record.value = *held->spec.value;
  record.timestamp = spec.timestamp;
  for (const auto& [name, value] : held->spec.headers)
    record.headers.push_back({name, value ? std::optional<std::string_view>(*value) : std::nullopt});
  return record;
}

/// The records of topics, and the group's offsets, as a broker keeps them. It outlives consumers: a test
/// destroys one, as a crash does, and makes another one.
struct FakeLog {
  std::map<kafka::PartitionId, std::vector<RecordSpec>> records;
  std::map<kafka::PartitionId, int64_t> committed;
  std::shared_ptr<int> live = std::make_shared<int>(0);  ///< records in memory

  void add(RecordSpec spec) {
    auto& partition = records[{spec.topic, spec.partition}];
    spec.offset = static_cast<int64_t>(partition.size());
    partition.push_back(std::move(spec));
  }
};

/// A member of a group whose rebalances the test decides.
class FakeConsumer final : public kafka::Consumer {
 public:
  explicit FakeConsumer(FakeLog& log) : log_(log) {}

  // ---- for the test
  void assign(const std::vector<kafka::PartitionId>& partitions) {
    events_.push_back({kafka::Rebalance::Kind::kAssigned, partitions});
  }
  void revoke(const std::vector<kafka::PartitionId>& partitions) {
    events_.push_back({kafka::Rebalance::Kind::kRevoked, partitions});
  }
  void lose(const std::vector<kafka::PartitionId>& partitions) {
    events_.push_back({kafka::Rebalance::Kind::kLost, partitions});
  }
  /// The topic is deleted and made anew: its offsets begin again, and nobody is told.
  void renew(const kafka::PartitionId& partition) {
    log_.records[partition].clear();
    log_.committed.erase(partition);
    next_[partition] = 0;
  }
  const std::set<kafka::PartitionId>& assigned() const { return assigned_; }
  const std::set<kafka::PartitionId>& paused() const { return paused_; }
  std::string trouble_text;
  std::optional<Error> commit_error;

  // ---- Consumer
  kafka::Polled poll(size_t max_records, size_t max_bytes) override {
    kafka::Polled polled;
    polled.committed = std::exchange(result_, std::nullopt);
    if (is_closing_ && !is_closed_ && events_.empty() && revoked_.empty()) {
      if (assigned_.empty()) {
        is_closed_ = true;
      } else {
        revoke({assigned_.begin(), assigned_.end()});
      }
    }
    if (!events_.empty() && revoked_.empty()) {
      polled.rebalance = std::move(events_.front());
      events_.pop_front();
      apply(*polled.rebalance);
      return polled;
    }
    size_t bytes = 0;
    for (const kafka::PartitionId& id : assigned_) {
      if (paused_.contains(id) || is_closing_ || revoked_.contains(id)) continue;
      auto& all = log_.records[id];
      int64_t& next = next_[id];
      for (; next < static_cast<int64_t>(all.size()); ++next) {
        if (polled.records.size() >= max_records || bytes >= max_bytes) return polled;
        polled.records.push_back(input_record(all[static_cast<size_t>(next)], log_.live));
        bytes += polled.records.back().bytes();
      }
    }
    return polled;
  }
  bool may_have_more() const override { return true; }
  void pause(std::span<const kafka::PartitionId> partitions) override {
    paused_.insert(partitions.begin(), partitions.end());
  }
  void resume(std::span<const kafka::PartitionId> partitions) override {
    for (const kafka::PartitionId& each : partitions) paused_.erase(each);
  }
  void commit(std::span<const kafka::Position> positions) override {
    if (commit_error) {
      result_ = Status{*commit_error};
      return;
    }
    for (const kafka::Position& each : positions) log_.committed[each.partition] = each.offset;
    result_ = Status{};
  }
  void let_go() override {
    for (const kafka::PartitionId& each : revoked_) assigned_.erase(each);
    revoked_.clear();
  }
  void close() override { is_closing_ = true; }
  bool is_closed() const override { return is_closed_; }
  std::optional<int64_t> end_of(const kafka::PartitionId& partition) const override {
    const auto found = log_.records.find(partition);
    if (found == log_.records.end()) return std::nullopt;
    return static_cast<int64_t>(found->second.size());
  }
  std::string_view trouble() const override { return trouble_text; }

 private:
  void apply(const kafka::Rebalance& change) {
    for (const kafka::PartitionId& each : change.partitions) {
      paused_.erase(each);
      switch (change.kind) {
        case kafka::Rebalance::Kind::kAssigned:
          assigned_.insert(each);
          next_[each] = log_.committed.contains(each) ? log_.committed[each] : 0;
          break;
        case kafka::Rebalance::Kind::kRevoked:
          revoked_.insert(each);
          break;
        case kafka::Rebalance::Kind::kLost:
          assigned_.erase(each);
          break;
      }
    }
  }

  FakeLog& log_;
  std::deque<kafka::Rebalance> events_;
  std::set<kafka::PartitionId> assigned_;
  std::set<kafka::PartitionId> revoked_;
  std::set<kafka::PartitionId> paused_;
  std::map<kafka::PartitionId, int64_t> next_;
  std::optional<Status> result_;
  bool is_closing_ = false;
  bool is_closed_ = false;
};

/// A producer for dead letters: many may be opened, and all write to the same broker.
class LetterProducer final : public kafka::Producer {
 public:
  struct Sent {
    std::string topic;
    std::optional<std::string> key;
    std::optional<std::string> value;
    std::map<std::string, std::optional<std::string>> headers;  ///< the last of several with one name
    uint64_t token = 0;
  };

  // ---- for the test. It belongs to the test: the producer that is handed out only forwards.
  struct Broker {
    std::vector<Sent> written;     ///< confirmed
    std::deque<Sent> open;         ///< sent and neither confirmed nor failed
    std::optional<Error> error;    ///< what records fail with
    size_t most_bytes = SIZE_MAX;  ///< of a value and headers; larger ones are too large
    bool answers = true;
    bool is_broken = false;
  };
  explicit LetterProducer(std::shared_ptr<Broker> broker) : broker_(std::move(broker)) {}

  Status send(const kafka::Record& record, uint64_t token) override {
    Sent sent{std::string(record.topic), {}, {}, {}, token};
    if (record.key) sent.key = *record.key;
    if (record.value) sent.value = *record.value;
    for (const kafka::Header& each : record.headers)
      sent.headers[std::string(each.name)] =
          each.value ? std::optional<std::string>(*each.value) : std::nullopt;
    broker_->open.push_back(std::move(sent));
    return {};
  }
  bool poll(std::vector<kafka::Confirmation>& confirmed) override {
    if (!broker_->answers) return false;
    const bool has_any = !broker_->open.empty();
    for (; !broker_->open.empty(); broker_->open.pop_front()) {
      kafka::Confirmation each;
      each.token = broker_->open.front().token;
      if (broker_->error) {
        each.error = std::make_shared<const Error>(*broker_->error);
      } else if (bytes_of(broker_->open.front()) > broker_->most_bytes) {
        each.error = std::make_shared<const Error>(Error{ErrorCode::kTooLarge, "kafka", "it is too large"});
      } else {
        broker_->written.push_back(std::move(broker_->open.front()));
      }
      confirmed.push_back(std::move(each));
    }
    return has_any;
  }
  void drop() override { broker_->open.clear(); }
  size_t outstanding() const override { return broker_->open.size(); }
  bool is_connected() const override { return true; }
  std::string_view last_error() const override { return {}; }
  bool is_broken() const override { return broker_->is_broken; }

 private:
  static size_t bytes_of(const Sent& sent) {
    size_t bytes = sent.key.value_or("").size() + sent.value.value_or("").size();
    for (const auto& [name, value] : sent.headers) bytes += name.size() + value.value_or("").size();
    return bytes;
  }

  std::shared_ptr<Broker> broker_;
};

}  // namespace delayq::support
