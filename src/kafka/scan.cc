#include "kafka/scan.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "kafka/library.h"

namespace delayq::kafka {

namespace {

using Clock = std::chrono::steady_clock;
using Offsets =
    std::unique_ptr<rd_kafka_ListConsumerGroupOffsets_t,
                    Ended<rd_kafka_ListConsumerGroupOffsets_t, rd_kafka_ListConsumerGroupOffsets_destroy>>;
using Options =
    std::unique_ptr<rd_kafka_AdminOptions_t, Ended<rd_kafka_AdminOptions_t, rd_kafka_AdminOptions_destroy>>;

constexpr int kWaitMs = 100;
/// Of groups that are asked for their offsets.
constexpr size_t kMostGroups = 1'000;

int ms_of(Millis time) { return static_cast<int>(time.count()); }

/// All partitions of these topics; those that do not exist are added to `missing`.
Result<PartitionList> partitions_of(rd_kafka_t& handle, std::span<const std::string> topics, Millis patience,
                                    std::vector<std::string>& missing) {
  const rd_kafka_metadata_t* found = nullptr;
  // All topics: to ask for one by its name could create it.
  const auto error = rd_kafka_metadata(&handle, 1, nullptr, &found, ms_of(patience));
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return error_of(error, {}, "no broker has answered");
  PartitionList list(rd_kafka_topic_partition_list_new(0));
  const std::span all(found->topics, static_cast<size_t>(found->topic_cnt));
  for (const std::string& name : topics) {
    const auto topic =
        std::find_if(all.begin(), all.end(), [&](const auto& each) { return name == each.topic; });
    const int count = topic == all.end() ? 0 : topic->partition_cnt;
    if (count == 0) missing.push_back(name);
    for (int i = 0; i < count; ++i) rd_kafka_topic_partition_list_add(list.get(), name.c_str(), i);
  }
  rd_kafka_metadata_destroy(found);
  return list;
}

class Scan {
 public:
  Scan(const ScanOptions& options, const std::function<Status(const InputRecord&)>& take)
      : options_(options), take_(take) {}

  Result<ScanReport> run() {
    for (const auto step : {&Scan::open, &Scan::find_ranges, &Scan::read}) {
      if (Status status = (this->*step)(); !status.ok()) return status.error();
    }
    return std::move(report_);
  }

  ~Scan() {
    events_.reset();
    // Without this flag it would leave the group in an orderly way, and wait for the network.
    if (handle_ != nullptr) rd_kafka_destroy_flags(handle_.release(), RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
  }
  Scan(const Scan&) = delete;
  Scan& operator=(const Scan&) = delete;

 private:
  Status open() {
    auto conf = make_conf(options_.client, {{"reconnect.backoff.max.ms", "2000"}},
                          {{"group.id", options_.group.empty() ? "delayq-scan" : options_.group},
                           {"enable.auto.commit", "false"},
                           {"enable.auto.offset.store", "false"},
                           {"enable.partition.eof", "true"},
                           {"auto.offset.reset", "earliest"}});
    if (!conf.ok()) return conf.error();
    auto handle = make_handle(RD_KAFKA_CONSUMER, std::move(*conf));
    if (!handle.ok()) return handle.error();
    handle_ = std::move(*handle);
    events_.reset(rd_kafka_queue_get_main(handle_.get()));
    rd_kafka_set_log_queue(handle_.get(), events_.get());
    return {};
  }

  /// From where to where each partition is read.
  Status find_ranges() {
    auto list = partitions_of(*handle_, options_.topics, options_.patience, report_.missing);
    if (!list.ok()) return told(list.error());
    ranges_ = std::move(*list);
    if (!options_.group.empty() && ranges_->cnt > 0) {
      const auto error = rd_kafka_committed(handle_.get(), ranges_.get(), ms_of(options_.patience));
      if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
        return told(error_of(error, fmt::format("group {}", options_.group), {}));
    }
    for (rd_kafka_topic_partition_t& each : partitions()) {
      int64_t first = 0;
      int64_t end = 0;
      const auto error = rd_kafka_query_watermark_offsets(handle_.get(), each.topic, each.partition, &first,
                                                          &end, ms_of(options_.patience));
      if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return told(error_of(error, each.topic, {}));
      each.offset = each.offset < 0 ? first : std::clamp(each.offset, first, std::max(first, end));
      if (each.offset < end) open_[{each.topic, each.partition}] = end;
    }
    return {};
  }

  Status read() {
    if (open_.empty()) return {};
    PartitionList wanted(rd_kafka_topic_partition_list_new(0));
    for (const rd_kafka_topic_partition_t& each : partitions()) {
      if (!open_.contains({each.topic, each.partition})) continue;
      rd_kafka_topic_partition_list_add(wanted.get(), each.topic, each.partition)->offset = each.offset;
    }
    const auto error = rd_kafka_assign(handle_.get(), wanted.get());
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return error_of(error, {}, {});
    auto deadline = Clock::now() + options_.patience;
    while (!open_.empty()) {
      hear_events();
      rd_kafka_message_t* const message = rd_kafka_consumer_poll(handle_.get(), kWaitMs);
      if (message == nullptr) {
        if (Clock::now() > deadline)
          return told({ErrorCode::kUnavailable, "kafka", "no broker has answered"});
        continue;
      }
      const rd_kafka_resp_err_t problem = message->err;
      if (problem == RD_KAFKA_RESP_ERR_NO_ERROR) {
        deadline = Clock::now() + options_.patience;
        if (Status status = came(record_of(message)); !status.ok()) return status;
        continue;
      }
      const bool is_end = problem == RD_KAFKA_RESP_ERR__PARTITION_EOF;
      if (is_end) {
        deadline = Clock::now() + options_.patience;
        reached(rd_kafka_topic_name(message->rkt), message->partition, message->offset);
      } else {
        last_error_ = rd_kafka_message_errstr(message);
      }
      rd_kafka_message_destroy(message);
      if (!is_end && (code_of(problem) != ErrorCode::kUnavailable || Clock::now() > deadline))
        return error_of(problem, {}, last_error_);
    }
    return {};
  }

  Status came(const InputRecord& record) {
    const auto found = open_.find({std::string(record.topic), record.partition});
    if (found == open_.end()) return {};
    const bool is_wanted = record.offset < found->second;
    reached(record.topic, record.partition, record.offset + 1);
    if (!is_wanted) return {};
    ++report_.records;
    return take_(record);
  }

  /// All before this offset was read. The last offsets may have no records: those of transactions.
  void reached(std::string_view topic, int32_t partition, int64_t offset) {
    const auto found = open_.find({std::string(topic), partition});
    if (found != open_.end() && offset >= found->second) open_.erase(found);
  }

  std::span<rd_kafka_topic_partition_t> partitions() const {
    return {ranges_->elems, static_cast<size_t>(ranges_->cnt)};
  }

  void hear_events() {
    for (;;) {
      const Event event(rd_kafka_queue_poll(events_.get(), 0));
      if (event == nullptr) return;
      if (rd_kafka_event_type(event.get()) == RD_KAFKA_EVENT_ERROR)
        last_error_ = rd_kafka_event_error_string(event.get());
    }
  }

  /// The error with what the library has reported besides.
  Error told(Error error) {
    hear_events();
    if (!last_error_.empty()) error.detail += ": " + last_error_;
    return error;
  }

  const ScanOptions& options_;
  const std::function<Status(const InputRecord&)>& take_;
  Handle handle_;
  EventQueue events_;
  PartitionList ranges_;
  std::map<PartitionId, int64_t> open_;  ///< partitions that are not read to their ends
  ScanReport report_;
  std::string last_error_;
};

/// Asks about groups.
class Groups {
 public:
  Groups(Handle handle, Millis patience)
      : handle_(std::move(handle)), answers_(rd_kafka_queue_new(handle_.get())), patience_(patience) {}

  Result<std::vector<std::string>> all() {
    rd_kafka_ListConsumerGroups(handle_.get(), options(RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPS).get(),
                                answers_.get());
    const auto event = answer(RD_KAFKA_EVENT_LISTCONSUMERGROUPS_RESULT);
    if (!event.ok()) return event.error();
    size_t count = 0;
    const rd_kafka_ConsumerGroupListing_t** const found = rd_kafka_ListConsumerGroups_result_valid(
        rd_kafka_event_ListConsumerGroups_result(event->get()), &count);
    std::vector<std::string> names;
    for (const rd_kafka_ConsumerGroupListing_t* each : std::span(found, std::min(count, kMostGroups)))
      names.emplace_back(rd_kafka_ConsumerGroupListing_group_id(each));
    return names;
  }

  /// Whether the group has committed an offset in any of the partitions.
  Result<bool> has_offsets(const std::string& group, const rd_kafka_topic_partition_list_t& partitions) {
    const Offsets wanted(rd_kafka_ListConsumerGroupOffsets_new(group.c_str(), &partitions));
    rd_kafka_ListConsumerGroupOffsets_t* all = wanted.get();
    rd_kafka_ListConsumerGroupOffsets(
        handle_.get(), &all, 1, options(RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPOFFSETS).get(), answers_.get());
    const auto event = answer(RD_KAFKA_EVENT_LISTCONSUMERGROUPOFFSETS_RESULT);
    if (!event.ok()) return event.error();
    size_t count = 0;
    const rd_kafka_group_result_t** const groups = rd_kafka_ListConsumerGroupOffsets_result_groups(
        rd_kafka_event_ListConsumerGroupOffsets_result(event->get()), &count);
    for (const rd_kafka_group_result_t* each : std::span(groups, count)) {
      const rd_kafka_topic_partition_list_t* const said = rd_kafka_group_result_partitions(each);
      for (int i = 0; said != nullptr && i < said->cnt; ++i) {
        if (said->elems[i].offset >= 0) return true;
      }
    }
    return false;
  }

 private:
  Options options(rd_kafka_admin_op_t operation) {
    Options options(rd_kafka_AdminOptions_new(handle_.get(), operation));
    rd_kafka_AdminOptions_set_request_timeout(options.get(), ms_of(patience_), nullptr, 0);
    return options;
  }
  Result<Event> answer(rd_kafka_event_type_t type) {
    for (;;) {
      Event event(rd_kafka_queue_poll(answers_.get(), ms_of(patience_) + 1'000));
      if (event == nullptr) return error_of(RD_KAFKA_RESP_ERR__TIMED_OUT, {}, "no broker has answered");
      if (rd_kafka_event_type(event.get()) != type) continue;
      if (const auto error = rd_kafka_event_error(event.get()); error != RD_KAFKA_RESP_ERR_NO_ERROR)
        return error_of(error, {}, rd_kafka_event_error_string(event.get()));
      return event;
    }
  }

  Handle handle_;
  EventQueue answers_;
  Millis patience_;
};

}  // namespace

Result<ScanReport> scan(const ScanOptions& options, const std::function<Status(const InputRecord&)>& take) {
  return Scan(options, take).run();
}

Result<std::vector<std::string>> groups_of(const ClientOptions& client, std::span<const std::string> topics,
                                           Millis patience) {
  auto conf = make_conf(client, {{"reconnect.backoff.max.ms", "2000"}}, {});
  if (!conf.ok()) return conf.error();
  auto handle = make_handle(RD_KAFKA_PRODUCER, std::move(*conf));
  if (!handle.ok()) return handle.error();
  std::vector<std::string> missing;
  const auto partitions = partitions_of(**handle, topics, patience, missing);
  if (!partitions.ok()) return partitions.error();
  std::vector<std::string> with_offsets;
  if ((*partitions)->cnt == 0) return with_offsets;
  Groups groups(std::move(*handle), patience);
  auto all = groups.all();
  if (!all.ok()) return all.error();
  for (const std::string& group : *all) {
    const auto has = groups.has_offsets(group, **partitions);
    if (!has.ok()) return has.error();
    if (*has) with_offsets.push_back(group);
  }
  return with_offsets;
}

}  // namespace delayq::kafka
