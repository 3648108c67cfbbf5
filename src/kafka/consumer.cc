#include "kafka/consumer.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "kafka/library.h"

namespace delayq::kafka {

namespace {

/// What a record needs besides its bytes, about.
constexpr size_t kRecordOverhead = 256;

std::vector<PartitionId> ids_of(const rd_kafka_topic_partition_list_t& list) {
  std::vector<PartitionId> ids;
  ids.reserve(static_cast<size_t>(list.cnt));
  for (int i = 0; i < list.cnt; ++i) ids.push_back({list.elems[i].topic, list.elems[i].partition});
  return ids;
}

PartitionList list_of(std::span<const PartitionId> partitions) {
  PartitionList list(rd_kafka_topic_partition_list_new(static_cast<int>(partitions.size())));
  for (const PartitionId& each : partitions)
    rd_kafka_topic_partition_list_add(list.get(), each.topic.c_str(), each.partition);
  return list;
}

std::optional<std::string_view> bytes_at(const void* data, size_t size) {
  if (data == nullptr) return std::nullopt;
  return std::string_view(static_cast<const char*>(data), size);
}

}  // namespace

InputRecord record_of(rd_kafka_message_t* message) {
  InputRecord record;
  record.storage = {message,
                    [](void* held) { rd_kafka_message_destroy(static_cast<rd_kafka_message_t*>(held)); }};
  record.topic = rd_kafka_topic_name(message->rkt);
  record.partition = message->partition;
  record.offset = message->offset;
  record.key = bytes_at(message->key, message->key_len);
  record.value = bytes_at(message->payload, message->len);
  rd_kafka_timestamp_type_t kind = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
  const int64_t stamp = rd_kafka_message_timestamp(message, &kind);
  if (kind != RD_KAFKA_TIMESTAMP_NOT_AVAILABLE && stamp >= 0) record.timestamp = from_unix_ms(stamp);
  rd_kafka_headers_t* headers = nullptr;
  if (rd_kafka_message_headers(message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR) return record;
  const size_t count = rd_kafka_header_cnt(headers);
  record.headers.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const char* name = nullptr;
    const void* value = nullptr;
    size_t size = 0;
    if (rd_kafka_header_get_all(headers, i, &name, &value, &size) != RD_KAFKA_RESP_ERR_NO_ERROR) break;
    record.headers.push_back({name, bytes_at(value, size)});
  }
  return record;
}

namespace {

class LibraryConsumer final : public AssignedConsumer {
 public:
  explicit LibraryConsumer(std::function<void()> wakeup) : wakeup_(std::move(wakeup)) {}
  ~LibraryConsumer() override;
  /// Starts it; without topics it is no member of the group. REQUIRES: called once, before anything else.
  Status start(Conf conf, const std::vector<std::string>& topics);

  Polled poll(size_t max_records, size_t max_bytes) override;
  bool may_have_more() const override { return may_have_more_; }
  void pause(std::span<const PartitionId> partitions) override;
  void resume(std::span<const PartitionId> partitions) override;
  void commit(std::span<const Position> positions) override;
  void let_go() override;
  void close() override;
  bool is_closed() const override {
    return closing_ != nullptr && rd_kafka_consumer_closed(handle_.get()) != 0;
  }
  std::optional<int64_t> end_of(const PartitionId& partition) const override;
  std::string_view trouble() const override;
  void assign(std::span<const PartitionId> partitions) override;
  void unassign(std::span<const PartitionId> partitions, bool is_lost) override;

 private:
  void wake_by(rd_kafka_queue_t* queue);
  void hear_events();
  void hear_closing();
  void hear(rd_kafka_event_t& event);
  void hear_error(const rd_kafka_message_t& message);
  void rebalanced(rd_kafka_resp_err_t kind, const rd_kafka_topic_partition_list_t& partitions);
  void add(const rd_kafka_topic_partition_list_t& partitions);
  void remove(const rd_kafka_topic_partition_list_t& partitions);
  std::optional<Rebalance> next_change();

  std::function<void()> wakeup_;
  Handle handle_;
  EventQueue records_;                 ///< and rebalances
  EventQueue events_;                  ///< errors, statistics, results of commits
  EventQueue closing_;                 ///< rebalances, when it closes
  std::vector<InputRecord> unwanted_;  ///< read when there was no room; at most one
  std::deque<Rebalance> changes_;      ///< of the partitions, not reported yet
  PartitionList revoked_;
  std::optional<Status> committed_;
  bool may_have_more_ = false;
  bool is_cut_off_ = false;
  bool was_assigned_ = false;                                       ///< at least once
  std::string last_error_;                                          ///< of the connections
  std::map<std::string, std::string, std::less<>> topic_troubles_;  ///< by topic; "" for the group
};

LibraryConsumer::~LibraryConsumer() {
  if (handle_ == nullptr) return;
  for (const EventQueue* queue : {&records_, &events_, &closing_}) {
    if (*queue != nullptr) rd_kafka_queue_cb_event_enable(queue->get(), nullptr, nullptr);
  }
  unwanted_.clear();
  revoked_.reset();
  records_.reset();
  events_.reset();
  closing_.reset();
  // Before the first assignment librdkafka 2.0.2 may abort the program here (its issue 4312,
  // cooperative-sticky): then the handle is left to the end of the process.
  if (!was_assigned_) {
    (void)handle_.release();
    return;
  }
  // Without this flag it would leave the group in an orderly way, and wait for the network.
  rd_kafka_destroy_flags(handle_.release(), RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
}

void LibraryConsumer::wake_by(rd_kafka_queue_t* queue) {
  if (!wakeup_) return;
  rd_kafka_queue_cb_event_enable(
      queue, [](rd_kafka_t*, void* self) { static_cast<LibraryConsumer*>(self)->wakeup_(); }, this);
}

Status LibraryConsumer::start(Conf conf, const std::vector<std::string>& topics) {
  rd_kafka_conf_set_opaque(conf.get(), this);
  rd_kafka_conf_set_rebalance_cb(
      conf.get(), [](rd_kafka_t*, rd_kafka_resp_err_t kind, rd_kafka_topic_partition_list_t* partitions,
                     void* self) { static_cast<LibraryConsumer*>(self)->rebalanced(kind, *partitions); });
  auto handle = make_handle(RD_KAFKA_CONSUMER, std::move(conf));
  if (!handle.ok()) return handle.error();
  handle_ = std::move(*handle);
  records_.reset(rd_kafka_queue_get_consumer(handle_.get()));
  events_.reset(rd_kafka_queue_get_main(handle_.get()));
  rd_kafka_set_log_queue(handle_.get(), events_.get());
  wake_by(records_.get());
  wake_by(events_.get());
  if (topics.empty()) return {};
  const PartitionList list(rd_kafka_topic_partition_list_new(static_cast<int>(topics.size())));
  for (const std::string& topic : topics)
    rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), RD_KAFKA_PARTITION_UA);
  const rd_kafka_resp_err_t error = rd_kafka_subscribe(handle_.get(), list.get());
  return error == RD_KAFKA_RESP_ERR_NO_ERROR ? Status{} : Status{error_of(error, "topics", {})};
}

Polled LibraryConsumer::poll(size_t max_records, size_t max_bytes) {
  Polled polled;
  hear_events();
  polled.committed = std::exchange(committed_, std::nullopt);
  if (closing_ != nullptr) {
    hear_closing();
    polled.rebalance = next_change();
    may_have_more_ = polled.rebalance.has_value();
    return polled;
  }
  size_t bytes = 0;
  if (max_records > 0) polled.records = std::exchange(unwanted_, {});
  may_have_more_ = true;
  while (changes_.empty() && polled.records.size() < std::max(max_records, size_t{1}) && bytes < max_bytes &&
         unwanted_.empty()) {
    rd_kafka_message_t* const message = rd_kafka_consumer_poll(handle_.get(), 0);
    if (message == nullptr) {
      may_have_more_ = !changes_.empty();
      break;
    }
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      hear_error(*message);
      rd_kafka_message_destroy(message);
      continue;
    }
    InputRecord record = record_of(message);
    bytes += record.bytes();
    is_cut_off_ = false;
    (max_records > 0 ? polled.records : unwanted_).push_back(std::move(record));
  }
  polled.rebalance = next_change();
  return polled;
}

std::optional<Rebalance> LibraryConsumer::next_change() {
  if (changes_.empty()) return std::nullopt;
  Rebalance change = std::move(changes_.front());
  changes_.pop_front();
  if (change.kind == Rebalance::Kind::kRevoked) revoked_ = list_of(change.partitions);
  return change;
}

// ---- what the library reports

void LibraryConsumer::hear_events() {
  for (;;) {
    const Event event(rd_kafka_queue_poll(events_.get(), 0));
    if (event == nullptr) return;
    hear(*event);
  }
}

/// Until a rebalance. Records that were under way are dropped: rd_kafka_queue_poll_callback() would end the
/// program when it finds one.
void LibraryConsumer::hear_closing() {
  while (changes_.empty()) {
    const Event event(rd_kafka_queue_poll(closing_.get(), 0));
    if (event == nullptr) return;
    if (rd_kafka_event_type(event.get()) != RD_KAFKA_EVENT_REBALANCE) continue;
    rebalanced(rd_kafka_event_error(event.get()), *rd_kafka_event_topic_partition_list(event.get()));
  }
}

void LibraryConsumer::hear(rd_kafka_event_t& event) {
  const rd_kafka_resp_err_t error = rd_kafka_event_error(&event);
  switch (rd_kafka_event_type(&event)) {
    case RD_KAFKA_EVENT_ERROR:
      if (error == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) {
        is_cut_off_ = true;  // its text only counts the brokers
      } else {
        last_error_ = rd_kafka_event_error_string(&event);
      }
      break;
    case RD_KAFKA_EVENT_STATS:
      // Both ways: that all brokers are down is reported once only, and older statistics may come after it.
      is_cut_off_ = !has_connection(rd_kafka_event_stats(&event));
      break;
    case RD_KAFKA_EVENT_OFFSET_COMMIT:
      if (error == RD_KAFKA_RESP_ERR_NO_ERROR) {
        if (!committed_) committed_ = Status{};
      } else if (error != RD_KAFKA_RESP_ERR__NO_OFFSET) {
        committed_ = Status{error_of(error, {}, {})};
      }
      break;
    default:  // log lines: what matters of them comes as an error, too
      break;
  }
}

void LibraryConsumer::hear_error(const rd_kafka_message_t& message) {
  const std::string topic = message.rkt == nullptr ? "" : rd_kafka_topic_name(message.rkt);
  topic_troubles_[topic] = error_of(message.err, topic, rd_kafka_message_errstr(&message)).detail;
}

std::string_view LibraryConsumer::trouble() const {
  if (is_cut_off_) return last_error_.empty() ? std::string_view("no broker can be reached") : last_error_;
  return topic_troubles_.empty() ? std::string_view() : topic_troubles_.begin()->second;
}

// ---- the group

void LibraryConsumer::rebalanced(rd_kafka_resp_err_t kind,
                                 const rd_kafka_topic_partition_list_t& partitions) {
  Rebalance change;
  change.partitions = ids_of(partitions);
  if (kind == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
    add(partitions);
    change.kind = Rebalance::Kind::kAssigned;
  } else if (kind == RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS && rd_kafka_assignment_lost(handle_.get()) == 0) {
    change.kind = Rebalance::Kind::kRevoked;
  } else {
    remove(partitions);
    change.kind = Rebalance::Kind::kLost;
  }
  changes_.push_back(std::move(change));
}

void LibraryConsumer::add(const rd_kafka_topic_partition_list_t& partitions) {
  topic_troubles_.erase("");
  for (const PartitionId& each : ids_of(partitions)) topic_troubles_.erase(each.topic);
  const LibraryError error(rd_kafka_incremental_assign(handle_.get(), &partitions));
  if (error != nullptr) topic_troubles_[""] = rd_kafka_error_string(error.get());
  was_assigned_ = true;
}

void LibraryConsumer::remove(const rd_kafka_topic_partition_list_t& partitions) {
  const LibraryError error(rd_kafka_incremental_unassign(handle_.get(), &partitions));
  if (error != nullptr) topic_troubles_[""] = rd_kafka_error_string(error.get());
}

void LibraryConsumer::let_go() {
  if (const PartitionList revoked = std::exchange(revoked_, nullptr)) remove(*revoked);
}

void LibraryConsumer::assign(std::span<const PartitionId> partitions) {
  add(*list_of(partitions));
  changes_.push_back({Rebalance::Kind::kAssigned, {partitions.begin(), partitions.end()}});
}

void LibraryConsumer::unassign(std::span<const PartitionId> partitions, bool is_lost) {
  if (is_lost) remove(*list_of(partitions));
  changes_.push_back(
      {is_lost ? Rebalance::Kind::kLost : Rebalance::Kind::kRevoked, {partitions.begin(), partitions.end()}});
}

void LibraryConsumer::pause(std::span<const PartitionId> partitions) {
  if (!partitions.empty()) rd_kafka_pause_partitions(handle_.get(), list_of(partitions).get());
}

void LibraryConsumer::resume(std::span<const PartitionId> partitions) {
  if (!partitions.empty()) rd_kafka_resume_partitions(handle_.get(), list_of(partitions).get());
}

void LibraryConsumer::commit(std::span<const Position> positions) {
  const PartitionList list(rd_kafka_topic_partition_list_new(static_cast<int>(positions.size())));
  for (const Position& each : positions) {
    rd_kafka_topic_partition_list_add(list.get(), each.partition.topic.c_str(), each.partition.partition)
        ->offset = each.offset;
  }
  const rd_kafka_resp_err_t error =
      rd_kafka_commit_queue(handle_.get(), list.get(), events_.get(), nullptr, nullptr);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) committed_ = Status{error_of(error, {}, {})};
}

void LibraryConsumer::close() {
  if (closing_ != nullptr) return;
  unwanted_.clear();
  closing_.reset(rd_kafka_queue_new(handle_.get()));
  wake_by(closing_.get());
  const LibraryError error(rd_kafka_consumer_close_queue(handle_.get(), closing_.get()));
  if (error != nullptr) topic_troubles_[""] = rd_kafka_error_string(error.get());
}

std::optional<int64_t> LibraryConsumer::end_of(const PartitionId& partition) const {
  int64_t begin = 0;
  int64_t end = 0;
  const rd_kafka_resp_err_t error = rd_kafka_get_watermark_offsets(handle_.get(), partition.topic.c_str(),
                                                                   partition.partition, &begin, &end);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR || end < 0) return std::nullopt;
  return end;
}

}  // namespace

size_t InputRecord::bytes() const {
  size_t bytes = kRecordOverhead + (key ? key->size() : 0) + (value ? value->size() : 0);
  for (const InputHeader& header : headers)
    bytes += sizeof(header) + header.name.size() + (header.value ? header.value->size() : 0);
  return bytes;
}

namespace {

Result<std::unique_ptr<LibraryConsumer>> open(ConsumerOptions options) {
  const std::string session = std::to_string(options.session_timeout.count());
  const std::string heartbeat = std::to_string(std::max<int64_t>(options.session_timeout.count() / 4, 1));
  const std::string kilobytes = std::to_string(std::max(uint64_t{64}, options.buffer_bytes >> 10));
  auto conf = make_conf(options.client,
                        {
                            {"fetch.error.backoff.ms", "100"},
                            // So soon is a topic, or a partition, found that is made later.
                            {"topic.metadata.refresh.interval.ms", "10000"},
                            {"reconnect.backoff.max.ms", "2000"},
                            {"queued.max.messages.kbytes", kilobytes},
                            {"queued.min.messages", "10000000"},  // the bytes are the limit
                            {"heartbeat.interval.ms", heartbeat},
                        },
                        {
                            {"group.id", options.group},
                            {"session.timeout.ms", session},
                            {"partition.assignment.strategy", "cooperative-sticky"},
                            {"auto.offset.reset", options.starts_at_end ? "latest" : "earliest"},
                            {"enable.auto.commit", "false"},
                            {"enable.auto.offset.store", "false"},
                            // Only these tell that a broker is back while nothing is read.
                            {"statistics.interval.ms", "5000"},
                        });
  if (!conf.ok()) return conf.error();
  auto consumer = std::make_unique<LibraryConsumer>(std::move(options.wakeup));
  if (Status status = consumer->start(std::move(*conf), options.topics); !status.ok()) return status.error();
  return consumer;
}

}  // namespace

Result<std::unique_ptr<Consumer>> open_consumer(ConsumerOptions options) {
  auto opened = open(std::move(options));
  if (!opened.ok()) return opened.error();
  return std::unique_ptr<Consumer>(std::move(*opened));
}

Result<std::unique_ptr<AssignedConsumer>> open_assigned_consumer(ConsumerOptions options) {
  options.topics.clear();
  auto opened = open(std::move(options));
  if (!opened.ok()) return opened.error();
  return std::unique_ptr<AssignedConsumer>(std::move(*opened));
}

}  // namespace delayq::kafka
