#include "kafka/reader.h"

#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "kafka/library.h"

namespace delayq::kafka {

namespace {

/// Records between two that are wanted are skipped by reading, if there are at most so many; otherwise by a
/// seek.
constexpr int64_t kReadOver = 200;
/// One poll() looks at about this many records, so that the caller can do other work in between.
constexpr int kMostPerPoll = 1'000;

struct Message {
  void operator()(rd_kafka_message_t* message) const { rd_kafka_message_destroy(message); }
};

class LibraryReader final : public Reader {
 public:
  LibraryReader(ReaderOptions options, Handle handle)
      : options_(std::move(options)), handle_(std::move(handle)) {
    queue_.reset(rd_kafka_queue_new(handle_.get()));
    events_.reset(rd_kafka_queue_get_main(handle_.get()));
    rd_kafka_set_log_queue(handle_.get(), events_.get());
    if (!options_.wakeup) return;
    rd_kafka_queue_cb_event_enable(
        queue_.get(), [](rd_kafka_t*, void* self) { static_cast<LibraryReader*>(self)->options_.wakeup(); },
        this);
  }
  ~LibraryReader() override {
    rd_kafka_queue_cb_event_enable(queue_.get(), nullptr, nullptr);
    for (auto& [name, partition] : partitions_) {
      if (partition.is_started) rd_kafka_consume_stop(partition.topic.get(), name.second);
    }
    partitions_.clear();
    queue_.reset();
    events_.reset();
  }

  void read(Moment now, std::string_view topic, int32_t partition, int64_t offset, Answer answer) override {
    Partition& place = partitions_[{std::string(topic), partition}];
    if (place.topic == nullptr)
      place.topic.reset(rd_kafka_topic_new(handle_.get(), std::string(topic).c_str(), nullptr));
    place.wanted.emplace(offset, Wanted{now + options_.timeout, std::move(answer)});
    ++outstanding_;
    if (place.is_started) return;
    go_to(place, partition, offset);
  }

  bool poll(Moment now) override {
    for (Event event(rd_kafka_queue_poll(events_.get(), 0)); event != nullptr;
         event.reset(rd_kafka_queue_poll(events_.get(), 0))) {
      if (rd_kafka_event_type(event.get()) == RD_KAFKA_EVENT_ERROR)
        last_error_ = rd_kafka_event_error_string(event.get());
    }
    for (int i = 0; i < kMostPerPoll; ++i) {
      const std::unique_ptr<rd_kafka_message_t, Message> message(rd_kafka_consume_queue(queue_.get(), 0));
      if (message == nullptr) break;
      if (message->rkt != nullptr) came(*message);
    }
    give_up_late(now);
    auto answers = std::exchange(answers_, {});
    for (auto& give : answers) give();
    return !answers.empty();
  }

  size_t outstanding() const override { return outstanding_; }

 private:
  struct Wanted {
    Moment deadline{};
    Answer answer;
  };
  struct Partition {
    Topic topic;
    bool is_started = false;
    int64_t position = 0;  ///< of the next record that comes
    std::multimap<int64_t, Wanted> wanted;
  };
  using Partitions = std::map<std::pair<std::string, int32_t>, Partition>;

  void reply(Partition& place, std::multimap<int64_t, Wanted>::iterator wanted,
             Result<std::optional<std::string>> result) {
    answers_.push_back([answer = std::move(wanted->second.answer), result = std::move(result)]() mutable {
      answer(std::move(result));
    });
    place.wanted.erase(wanted);
    --outstanding_;
  }

  void go_to(Partition& place, int32_t partition, int64_t offset) {
    place.position = offset;
    if (place.is_started) {
      rd_kafka_seek(place.topic.get(), partition, offset, 0);
      return;
    }
    place.is_started = rd_kafka_consume_start_queue(place.topic.get(), partition, offset, queue_.get()) == 0;
    if (place.is_started) return;
    const Error error = error_of(rd_kafka_last_error(), rd_kafka_topic_name(place.topic.get()), {});
    while (!place.wanted.empty()) reply(place, place.wanted.begin(), error);
  }

  void came(const rd_kafka_message_t& message) {
    const auto found = partitions_.find({rd_kafka_topic_name(message.rkt), message.partition});
    if (found == partitions_.end() || !found->second.is_started) return;
    Partition& place = found->second;
    if (message.err == RD_KAFKA_RESP_ERR_NO_ERROR) {
      if (message.offset < place.position) return;  // of before a seek
      // Offsets that are left out do not exist: transactions, or records that were removed.
      for (auto each = place.wanted.lower_bound(place.position);
           each != place.wanted.end() && each->first <= message.offset;
           each = place.wanted.lower_bound(place.position)) {
        std::optional<std::string> value;
        if (each->first == message.offset)
          value.emplace(static_cast<const char*>(message.payload), message.len);
        reply(place, each, std::move(value));
      }
      place.position = message.offset + 1;
    } else if (message.err == RD_KAFKA_RESP_ERR__PARTITION_EOF ||
               message.err == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET ||
               message.err == RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE) {
      // Nothing is there from the position on, or not any more.
      const bool is_end = message.err == RD_KAFKA_RESP_ERR__PARTITION_EOF;
      if (is_end && message.offset != place.position) return;  // of before a seek
      const auto first = place.wanted.lower_bound(place.position);
      if (first == place.wanted.end()) return go_on(found);
      reply(place, first, std::optional<std::string>());
      if (!is_end && !place.wanted.empty()) {
        // The library reads no further, and refuses to seek.
        rd_kafka_consume_stop(place.topic.get(), found->first.second);
        place.is_started = false;
        auto next = place.wanted.lower_bound(place.position);
        if (next == place.wanted.end()) next = place.wanted.begin();
        return go_to(place, found->first.second, next->first);
      }
    } else {
      last_error_ = error_of(message.err, found->first.first, rd_kafka_message_errstr(&message)).detail;
      return;
    }
    go_on(found);
  }

  void go_on(Partitions::iterator found) {
    Partition& place = found->second;
    if (place.wanted.empty()) {
      rd_kafka_consume_stop(place.topic.get(), found->first.second);
      partitions_.erase(found);
      return;
    }
    auto next = place.wanted.lower_bound(place.position);
    if (next == place.wanted.end()) next = place.wanted.begin();
    if (next->first < place.position || next->first > place.position + kReadOver)
      go_to(place, found->first.second, next->first);
  }

  void give_up_late(Moment now) {
    for (auto found = partitions_.begin(); found != partitions_.end();) {
      const auto each = found++;
      Partition& place = each->second;
      for (auto wanted = place.wanted.begin(); wanted != place.wanted.end();) {
        const auto it = wanted++;
        if (it->second.deadline > now) continue;
        reply(place, it,
              Error{ErrorCode::kUnavailable, "read",
                    fmt::format("{} partition {} could not be read in time{}{}", each->first.first,
                                each->first.second, last_error_.empty() ? "" : ": ", last_error_)});
      }
      if (place.wanted.empty()) go_on(each);
    }
  }

  ReaderOptions options_;
  Handle handle_;
  EventQueue queue_;
  EventQueue events_;
  Partitions partitions_;
  size_t outstanding_ = 0;
  std::vector<absl::AnyInvocable<void()>> answers_;
  std::string last_error_;
};

}  // namespace

Result<std::unique_ptr<Reader>> open_reader(ReaderOptions options) {
  auto conf = make_conf(options.client,
                        {
                            {"fetch.error.backoff.ms", "100"},
                            {"reconnect.backoff.max.ms", "2000"},
                        },
                        {
                            {"enable.partition.eof", "true"},
                            {"auto.offset.reset", "error"},
                            // Single records are wanted: not much is read ahead. The bound is in bytes and
                            // above what is read before a partition is stopped: librdkafka 2.0 looks again
                            // only after a second at a partition that has reached it.
                            {"queued.min.messages", "100000"},
                            {"queued.max.messages.kbytes", "8192"},
                            {"fetch.message.max.bytes", "131072"},
                            {"fetch.wait.max.ms", "10"},
                        });
  if (!conf.ok()) return conf.error();
  auto handle = make_handle(RD_KAFKA_CONSUMER, std::move(*conf));
  if (!handle.ok()) return handle.error();
  return std::unique_ptr<Reader>(std::make_unique<LibraryReader>(std::move(options), std::move(*handle)));
}

}  // namespace delayq::kafka
