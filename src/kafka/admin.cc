#include "kafka/admin.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "kafka/library.h"

namespace delayq::kafka {

namespace {

using Options =
    std::unique_ptr<rd_kafka_AdminOptions_t, Ended<rd_kafka_AdminOptions_t, rd_kafka_AdminOptions_destroy>>;
using WantedTopic =
    std::unique_ptr<rd_kafka_NewTopic_t, Ended<rd_kafka_NewTopic_t, rd_kafka_NewTopic_destroy>>;
using Resource = std::unique_ptr<rd_kafka_ConfigResource_t,
                                 Ended<rd_kafka_ConfigResource_t, rd_kafka_ConfigResource_destroy>>;

/// Pointers to what the objects own, as the library wants them.
template <class Owner>
auto pointers(const std::vector<Owner>& owners) {
  std::vector<typename Owner::pointer> all;
  all.reserve(owners.size());
  for (const Owner& each : owners) all.push_back(each.get());
  return all;
}

std::optional<int64_t> limit_in(std::string_view text) {
  int64_t value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value < 0 ? std::nullopt : std::optional(value);
}

void note(TopicFacts& facts, std::string_view name, const char* value) {
  if (value == nullptr) return;
  if (name == "retention.ms") {
    const auto limit = limit_in(value);
    facts.retention = limit ? std::optional(Millis{*limit}) : std::nullopt;
  } else if (name == "retention.bytes") {
    facts.max_bytes = limit_in(value);
  } else if (name == "cleanup.policy") {
    facts.cleanup = value;
  }
}

class LibraryAdmin final : public Admin {
 public:
  explicit LibraryAdmin(Handle handle)
      : handle_(std::move(handle)), answers_(rd_kafka_queue_new(handle_.get())) {
    const EventQueue main(rd_kafka_queue_get_main(handle_.get()));
    rd_kafka_queue_forward(main.get(), answers_.get());  // errors of the connections
  }

  Status create(std::span<const NewTopic> topics, Millis timeout) override;
  Result<std::vector<TopicFacts>> describe(std::span<const std::string> names, Millis timeout) override;

 private:
  Options options(rd_kafka_admin_op_t operation, Millis timeout);
  /// The next answer of that type; older ones, of calls that were given up, are dropped. Does not wait for
  /// the timeout when the brokers refuse the client: trying again would change nothing.
  Result<Event> answer(rd_kafka_event_type_t type, Millis timeout);
  Status read_partitions(std::span<const std::string> names, Millis timeout, std::vector<TopicFacts>& facts);
  Status read_configs(Millis timeout, std::vector<TopicFacts>& facts);

  Handle handle_;
  EventQueue answers_;
  std::string why_;  ///< the last error of a connection
};

Options LibraryAdmin::options(rd_kafka_admin_op_t operation, Millis timeout) {
  Options options(rd_kafka_AdminOptions_new(handle_.get(), operation));
  const int ms = static_cast<int>(timeout.count());
  rd_kafka_AdminOptions_set_request_timeout(options.get(), ms, nullptr, 0);
  if (operation == RD_KAFKA_ADMIN_OP_CREATETOPICS)
    rd_kafka_AdminOptions_set_operation_timeout(options.get(), ms, nullptr, 0);
  return options;
}

Result<Event> LibraryAdmin::answer(rd_kafka_event_type_t type, Millis timeout) {
  for (;;) {
    Event event(rd_kafka_queue_poll(answers_.get(), static_cast<int>(timeout.count()) + 1'000));
    if (event == nullptr) return error_of(RD_KAFKA_RESP_ERR__TIMED_OUT, {}, "no broker has answered");
    const auto error = rd_kafka_event_error(event.get());
    if (rd_kafka_event_type(event.get()) == RD_KAFKA_EVENT_ERROR) {
      // That all brokers are down only counts them; the reason is another event.
      if (error != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) why_ = rd_kafka_event_error_string(event.get());
      if (error == RD_KAFKA_RESP_ERR__AUTHENTICATION || error == RD_KAFKA_RESP_ERR__SSL)
        return error_of(error, {}, why_);
    }
    if (rd_kafka_event_type(event.get()) != type) continue;
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return event;
    Error said = error_of(error, {}, rd_kafka_event_error_string(event.get()));
    if (said.code == ErrorCode::kUnavailable && !why_.empty()) said.detail += fmt::format(" ({})", why_);
    return said;
  }
}

Status LibraryAdmin::create(std::span<const NewTopic> topics, Millis timeout) {
  std::vector<WantedTopic> wanted;
  for (const NewTopic& topic : topics) {
    std::array<char, 256> text{};
    WantedTopic& made = wanted.emplace_back(rd_kafka_NewTopic_new(
        topic.name.c_str(), topic.partitions, topic.replication, text.data(), text.size()));
    if (made == nullptr) return error_of(RD_KAFKA_RESP_ERR__INVALID_ARG, topic.name, text.data());
    for (const auto& [name, value] : topic.config)
      rd_kafka_NewTopic_set_config(made.get(), name.c_str(), value.c_str());
  }
  if (wanted.empty()) return {};
  auto all = pointers(wanted);
  rd_kafka_CreateTopics(handle_.get(), all.data(), all.size(),
                        options(RD_KAFKA_ADMIN_OP_CREATETOPICS, timeout).get(), answers_.get());
  const auto event = answer(RD_KAFKA_EVENT_CREATETOPICS_RESULT, timeout);
  if (!event.ok()) return event.error();
  size_t count = 0;
  const rd_kafka_topic_result_t** const results =
      rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event->get()), &count);
  for (const rd_kafka_topic_result_t* each : std::span(results, count)) {
    const rd_kafka_resp_err_t error = rd_kafka_topic_result_error(each);
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR || error == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS) continue;
    const char* const text = rd_kafka_topic_result_error_string(each);
    Error said = error_of(error, rd_kafka_topic_result_name(each), text == nullptr ? "" : text);
    // The broker has answered: it is the request that is wrong.
    const bool is_away =
        error == RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT || error == RD_KAFKA_RESP_ERR__TIMED_OUT;
    if (said.code == ErrorCode::kUnavailable && !is_away) said.code = ErrorCode::kInvalid;
    return said;
  }
  return {};
}

Status LibraryAdmin::read_partitions(std::span<const std::string> names, Millis timeout,
                                     std::vector<TopicFacts>& facts) {
  const rd_kafka_metadata_t* found = nullptr;
  // All topics: to ask for one by its name could create it.
  const auto error = rd_kafka_metadata(handle_.get(), 1, nullptr, &found, static_cast<int>(timeout.count()));
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return error_of(error, {}, "no broker has answered");
  for (const std::string& name : names) {
    for (const rd_kafka_metadata_topic_t& topic :
         std::span(found->topics, static_cast<size_t>(found->topic_cnt))) {
      if (name != topic.topic || topic.partition_cnt == 0) continue;
      TopicFacts& each = facts.emplace_back();
      each.name = name;
      each.partitions = topic.partition_cnt;
      each.replication = topic.partitions[0].replica_cnt;
    }
  }
  rd_kafka_metadata_destroy(found);
  return {};
}

Status LibraryAdmin::read_configs(Millis timeout, std::vector<TopicFacts>& facts) {
  std::vector<Resource> wanted;
  for (const TopicFacts& each : facts)
    wanted.emplace_back(rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, each.name.c_str()));
  auto all = pointers(wanted);
  rd_kafka_DescribeConfigs(handle_.get(), all.data(), all.size(),
                           options(RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS, timeout).get(), answers_.get());
  const auto event = answer(RD_KAFKA_EVENT_DESCRIBECONFIGS_RESULT, timeout);
  if (!event.ok()) return event.error();
  size_t count = 0;
  const rd_kafka_ConfigResource_t** const resources =
      rd_kafka_DescribeConfigs_result_resources(rd_kafka_event_DescribeConfigs_result(event->get()), &count);
  for (const rd_kafka_ConfigResource_t* resource : std::span(resources, count)) {
    const std::string_view name = rd_kafka_ConfigResource_name(resource);
    const auto topic =
        std::find_if(facts.begin(), facts.end(), [&](const TopicFacts& each) { return each.name == name; });
    if (topic == facts.end()) continue;
    const auto error = rd_kafka_ConfigResource_error(resource);
    if (error == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART) {
      // It was made a moment ago, and this broker is another one than the one that told of the partitions.
      facts.erase(topic);
      continue;
    }
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
      const char* const text = rd_kafka_ConfigResource_error_string(resource);
      return error_of(error, name, text == nullptr ? "" : text);
    }
    size_t entries = 0;
    const rd_kafka_ConfigEntry_t** const configs = rd_kafka_ConfigResource_configs(resource, &entries);
    for (const rd_kafka_ConfigEntry_t* entry : std::span(configs, entries))
      note(*topic, rd_kafka_ConfigEntry_name(entry), rd_kafka_ConfigEntry_value(entry));
  }
  return {};
}

Result<std::vector<TopicFacts>> LibraryAdmin::describe(std::span<const std::string> names, Millis timeout) {
  std::vector<TopicFacts> facts;
  if (Status status = read_partitions(names, timeout, facts); !status) return status.error();
  if (facts.empty()) return facts;
  if (Status status = read_configs(timeout, facts); !status) return status.error();
  return facts;
}

}  // namespace

Result<std::unique_ptr<Admin>> open_admin(const ClientOptions& options) {
  auto conf = make_conf(options, {{"reconnect.backoff.max.ms", "2000"}}, {});
  if (!conf.ok()) return conf.error();
  auto handle = make_handle(RD_KAFKA_PRODUCER, std::move(*conf));
  if (!handle.ok()) return handle.error();
  return std::unique_ptr<Admin>(std::make_unique<LibraryAdmin>(std::move(*handle)));
}

}  // namespace delayq::kafka
