#include "kafka/producer.h"

#include <algorithm>
#include <array>
#include <utility>

#include <absl/container/flat_hash_map.h>
#include <fmt/format.h>

#include "core/text.h"
#include "kafka/library.h"

namespace delayq::kafka {

namespace {

/// Handles of topics that are kept for the next record. Beyond that, all are made anew.
constexpr size_t kMostTopics = 10'000;
/// One poll() reports about this many records, so that the caller can do other work in between.
constexpr size_t kMostConfirmed = 10'000;

size_t bytes_of(const Record& record) {
  size_t bytes = (record.value ? record.value->size() : 0) + (record.key ? record.key->size() : 0);
  for (const Header& header : record.headers)
    bytes += header.name.size() + (header.value ? header.value->size() : 0);
  return bytes;
}

/// To the library a null pointer means that there is no value; an empty view may have one.
const char* data_of(std::string_view bytes) { return bytes.data() == nullptr ? "" : bytes.data(); }

rd_kafka_headers_t* headers_of(const Record& record) {
  if (record.headers.empty()) return nullptr;
  rd_kafka_headers_t* const headers = rd_kafka_headers_new(record.headers.size());
  for (const Header& header : record.headers) {
    rd_kafka_header_add(headers, header.name.data(), static_cast<ssize_t>(header.name.size()),
                        header.value ? data_of(*header.value) : nullptr,
                        header.value ? static_cast<ssize_t>(header.value->size()) : 0);
  }
  return headers;
}

/// The arguments of rd_kafka_produceva(), which takes everything that a record may have.
class Arguments {
 public:
  rd_kafka_vu_t& add(rd_kafka_vtype_t type) {
    rd_kafka_vu_t& next = all_[count_++];
    next.vtype = type;
    return next;
  }
  void add_bytes(rd_kafka_vtype_t type, std::string_view bytes) {
    // The library copies them (RD_KAFKA_MSG_F_COPY) and does not write.
    add(type).u.mem = {const_cast<char*>(data_of(bytes)), bytes.size()};  // NOLINT(*-const-cast)
  }
  LibraryError produce(rd_kafka_t* handle) const {
    return LibraryError(rd_kafka_produceva(handle, all_.data(), count_));
  }

 private:
  // Not initialised as a whole: it is filled for each record.
  std::array<rd_kafka_vu_t, 8> all_;
  size_t count_ = 0;
};

class LibraryProducer final : public Producer {
 public:
  LibraryProducer(ProducerOptions options, Handle handle);
  ~LibraryProducer() override;

  Status send(const Record& record, uint64_t token) override;
  bool poll(std::vector<Confirmation>& confirmed) override;
  void drop() override;
  size_t outstanding() const override { return outstanding_; }
  bool is_connected() const override { return is_connected_; }
  std::string_view last_error() const override { return last_error_; }
  bool is_broken() const override { return is_broken_; }

 private:
  rd_kafka_topic_t* topic_of(std::string_view name);
  // Both queue a record.
  static rd_kafka_resp_err_t produce(rd_kafka_topic_t* topic, const Record& record, uint64_t token);
  rd_kafka_resp_err_t produce_with_all(rd_kafka_topic_t* topic, const Record& record, uint64_t token);
  void confirm(rd_kafka_event_t& event, std::vector<Confirmation>& confirmed);
  std::shared_ptr<const Error> reason_of(const rd_kafka_message_t& message);
  void note_error(rd_kafka_event_t& event);

  ProducerOptions options_;
  Handle handle_;
  EventQueue events_;
  absl::flat_hash_map<std::string, Topic> topics_;
  std::string last_name_;  ///< the next record often has the same topic
  rd_kafka_topic_t* last_topic_ = nullptr;
  size_t outstanding_ = 0;
  bool is_connected_ = true;  // until the opposite is known
  bool is_broken_ = false;
  std::string last_error_;
  // The last error of a record, within one poll(): those that follow are often the same.
  rd_kafka_resp_err_t repeated_ = RD_KAFKA_RESP_ERR_NO_ERROR;
  const rd_kafka_topic_t* repeated_topic_ = nullptr;
  std::shared_ptr<const Error> repeated_error_;
};

LibraryProducer::LibraryProducer(ProducerOptions options, Handle handle)
    : options_(std::move(options)),
      handle_(std::move(handle)),
      events_(rd_kafka_queue_get_main(handle_.get())) {
  rd_kafka_set_log_queue(handle_.get(), events_.get());
  if (options_.wakeup) {
    rd_kafka_queue_cb_event_enable(
        events_.get(),
        [](rd_kafka_t*, void* self) { static_cast<LibraryProducer*>(self)->options_.wakeup(); }, this);
  }
}

LibraryProducer::~LibraryProducer() {
  rd_kafka_queue_cb_event_enable(events_.get(), nullptr, nullptr);
  drop();  // otherwise it would wait for records that are being sent
  topics_.clear();
  events_.reset();
}

void LibraryProducer::drop() {
  rd_kafka_purge(handle_.get(),
                 RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT | RD_KAFKA_PURGE_F_NON_BLOCKING);
}

rd_kafka_topic_t* LibraryProducer::topic_of(std::string_view name) {
  if (last_topic_ != nullptr && name == last_name_) return last_topic_;
  last_name_ = name;
  last_topic_ = nullptr;
  if (topics_.size() >= kMostTopics) topics_.clear();
  Topic& topic = topics_[last_name_];
  if (topic == nullptr) topic.reset(rd_kafka_topic_new(handle_.get(), last_name_.c_str(), nullptr));
  last_topic_ = topic.get();
  if (last_topic_ == nullptr) topics_.erase(last_name_);
  return last_topic_;
}

Status LibraryProducer::send(const Record& record, uint64_t token) {
  if (outstanding_ >= options_.max_records)
    return Error{ErrorCode::kOverloaded, "kafka", "too many records are not confirmed yet"};
  if (bytes_of(record) > options_.max_bytes)
    return error_of(RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, record.topic,
                    "the record is larger than the buffer");
  rd_kafka_topic_t* const topic = topic_of(record.topic);
  if (topic == nullptr)
    return error_of(RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION, record.topic, "this is not a name of a Kafka topic");
  const rd_kafka_resp_err_t error = record.headers.empty() && !record.timestamp
                                        ? produce(topic, record, token)
                                        : produce_with_all(topic, record, token);
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR) {
    ++outstanding_;
    return {};
  }
  if (error == RD_KAFKA_RESP_ERR__FATAL) is_broken_ = true;
  return error_of(error, record.topic, {});
}

/// Cheaper than the other one, but knows neither headers nor timestamps.
rd_kafka_resp_err_t LibraryProducer::produce(rd_kafka_topic_t* topic, const Record& record, uint64_t token) {
  // The library copies the bytes (RD_KAFKA_MSG_F_COPY) and does not write.
  const auto pointer = [](const std::optional<std::string_view>& bytes) {
    return bytes ? const_cast<char*>(data_of(*bytes)) : nullptr;  // NOLINT(*-const-cast)
  };
  const int result = rd_kafka_produce(
      topic, record.partition.value_or(RD_KAFKA_PARTITION_UA), RD_KAFKA_MSG_F_COPY, pointer(record.value),
      record.value ? record.value->size() : 0, pointer(record.key), record.key ? record.key->size() : 0,
      reinterpret_cast<void*>(token));  // NOLINT(*-int-to-ptr)
  return result == 0 ? RD_KAFKA_RESP_ERR_NO_ERROR : rd_kafka_last_error();
}

rd_kafka_resp_err_t LibraryProducer::produce_with_all(rd_kafka_topic_t* topic, const Record& record,
                                                      uint64_t token) {
  Arguments arguments;
  arguments.add(RD_KAFKA_VTYPE_RKT).u.rkt = topic;
  arguments.add(RD_KAFKA_VTYPE_MSGFLAGS).u.i = RD_KAFKA_MSG_F_COPY;
  arguments.add(RD_KAFKA_VTYPE_OPAQUE).u.ptr = reinterpret_cast<void*>(token);  // NOLINT(*-int-to-ptr)
  arguments.add(RD_KAFKA_VTYPE_PARTITION).u.i32 = record.partition.value_or(RD_KAFKA_PARTITION_UA);
  if (record.value) arguments.add_bytes(RD_KAFKA_VTYPE_VALUE, *record.value);
  if (record.key) arguments.add_bytes(RD_KAFKA_VTYPE_KEY, *record.key);
  if (record.timestamp)
    arguments.add(RD_KAFKA_VTYPE_TIMESTAMP).u.i64 = record.timestamp->time_since_epoch().count();
  rd_kafka_headers_t* const headers = headers_of(record);
  if (headers != nullptr) arguments.add(RD_KAFKA_VTYPE_HEADERS).u.headers = headers;
  const LibraryError error = arguments.produce(handle_.get());
  if (error == nullptr) return RD_KAFKA_RESP_ERR_NO_ERROR;
  if (headers != nullptr) rd_kafka_headers_destroy(headers);  // the library takes them only on success
  return rd_kafka_error_code(error.get());
}

bool LibraryProducer::poll(std::vector<Confirmation>& confirmed) {
  bool has_any = false;
  repeated_error_ = nullptr;
  const size_t before = confirmed.size();
  while (confirmed.size() - before < kMostConfirmed) {
    const Event event(rd_kafka_queue_poll(events_.get(), 0));
    if (event == nullptr) return has_any;
    has_any = true;
    switch (rd_kafka_event_type(event.get())) {
      case RD_KAFKA_EVENT_DR:
        confirm(*event, confirmed);
        break;
      case RD_KAFKA_EVENT_ERROR:
        note_error(*event);
        break;
      case RD_KAFKA_EVENT_STATS:
        if (has_connection(rd_kafka_event_stats(event.get()))) is_connected_ = true;
        break;
      default:  // log lines: what matters of them comes as an error, too
        break;
    }
  }
  return has_any;
}

void LibraryProducer::confirm(rd_kafka_event_t& event, std::vector<Confirmation>& confirmed) {
  confirmed.reserve(confirmed.size() + rd_kafka_event_message_count(&event));
  while (const rd_kafka_message_t* message = rd_kafka_event_message_next(&event)) {
    --outstanding_;
    Confirmation& each = confirmed.emplace_back();
    each.token = reinterpret_cast<uint64_t>(message->_private);
    each.partition = message->partition;
    each.offset = message->offset;
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
      is_connected_ = true;
    } else {
      each.error = reason_of(*message);
    }
  }
}

std::shared_ptr<const Error> LibraryProducer::reason_of(const rd_kafka_message_t& message) {
  if (message.err == RD_KAFKA_RESP_ERR__FATAL) is_broken_ = true;
  if (repeated_error_ == nullptr || message.err != repeated_ || message.rkt != repeated_topic_) {
    // Not rd_kafka_message_errstr(), which returns the value of a record that was produced.
    Error error = error_of(message.err, rd_kafka_topic_name(message.rkt), {});
    // A record that waited for too long only says so; the reason is what happened to the connections.
    if (error.code == ErrorCode::kUnavailable && !is_connected_ && !last_error_.empty())
      error.detail = last_error_;
    repeated_ = message.err;
    repeated_topic_ = message.rkt;
    repeated_error_ = std::make_shared<const Error>(std::move(error));
  }
  return repeated_error_;
}

void LibraryProducer::note_error(rd_kafka_event_t& event) {
  const rd_kafka_resp_err_t code = rd_kafka_event_error(&event);
  if (rd_kafka_event_error_is_fatal(&event) != 0) is_broken_ = true;
  if (code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) {
    is_connected_ = false;  // its text only counts the brokers
  } else {
    last_error_ = rd_kafka_event_error_string(&event);
  }
}

}  // namespace

Result<std::unique_ptr<Producer>> open_producer(ProducerOptions options) {
  const std::string timeout = std::to_string(options.timeout.count());
  const std::string topic_wait = std::to_string(options.topic_wait.count());
  const std::string records = std::to_string(options.max_records);
  const std::string kilobytes = std::to_string(std::max(uint64_t{1}, options.max_bytes >> 10));
  auto conf = make_conf(options.client,
                        {
                            {"linger.ms", "5"},
                            // As the Java clients spread keys.
                            {"partitioner", "murmur2_random"},
                            // The broker and the topic say what is too large.
                            {"message.max.bytes", "1000000000"},
                            {"topic.metadata.propagation.max.ms", topic_wait},
                            // So soon is a topic found that was made after it was first written to.
                            {"topic.metadata.refresh.interval.ms", "10000"},
                            {"reconnect.backoff.max.ms", "2000"},
                            {"queue.buffering.max.kbytes", kilobytes},
                        },
                        {
                            {"enable.idempotence", "true"},
                            {"acks", "all"},
                            {"message.timeout.ms", timeout},
                            {"queue.buffering.max.messages", records},
                            // Only these tell that a broker is back while nothing is written.
                            {"statistics.interval.ms", "1000"},
                        });
  if (!conf.ok()) return conf.error();
  auto handle = make_handle(RD_KAFKA_PRODUCER, std::move(*conf));
  if (!handle.ok()) return handle.error();
  return std::unique_ptr<Producer>(std::make_unique<LibraryProducer>(std::move(options), std::move(*handle)));
}

}  // namespace delayq::kafka
