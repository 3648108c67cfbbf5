#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <librdkafka/rdkafka.h>

#include "core/result.h"
#include "kafka/client_options.h"
#include "kafka/consumer.h"

/// What the sources of this folder share of librdkafka. Not for other folders: the headers beside it name no
/// type of the library.
namespace delayq::kafka {

template <class T, void (*end)(T*)>
struct Ended {
  void operator()(T* handle) const { end(handle); }
};
using Conf = std::unique_ptr<rd_kafka_conf_t, Ended<rd_kafka_conf_t, rd_kafka_conf_destroy>>;
/// Waits for the library's threads.
using Handle = std::unique_ptr<rd_kafka_t, Ended<rd_kafka_t, rd_kafka_destroy>>;
using EventQueue = std::unique_ptr<rd_kafka_queue_t, Ended<rd_kafka_queue_t, rd_kafka_queue_destroy>>;
using Event = std::unique_ptr<rd_kafka_event_t, Ended<rd_kafka_event_t, rd_kafka_event_destroy>>;
using Topic = std::unique_ptr<rd_kafka_topic_t, Ended<rd_kafka_topic_t, rd_kafka_topic_destroy>>;
using LibraryError = std::unique_ptr<rd_kafka_error_t, Ended<rd_kafka_error_t, rd_kafka_error_destroy>>;

using PartitionList =
    std::unique_ptr<rd_kafka_topic_partition_list_t,
                    Ended<rd_kafka_topic_partition_list_t, rd_kafka_topic_partition_list_destroy>>;

using SettingPair = std::pair<std::string_view, std::string_view>;

/// The library's configuration of a client, in this order, so that later ones override earlier ones:
/// `defaults` (which the operator may override), the operator's own settings, the rest of `options`, and
/// `required`. Log lines and errors become events of the client's main queue (or of the queue that
/// rd_kafka_set_log_queue() names).
Result<Conf> make_conf(const ClientOptions& options, std::initializer_list<SettingPair> defaults,
                       std::initializer_list<SettingPair> required);

/// Starts the client. The library owns the configuration then.
Result<Handle> make_handle(rd_kafka_type_t type, Conf conf);

/// Whether the library's statistics have a broker with a connection.
inline bool has_connection(std::string_view statistics) {
  return statistics.find(R"("state":"UP")") != std::string_view::npos;
}

/// Takes over the message. REQUIRES: it is no error.
InputRecord record_of(rd_kafka_message_t* message);

/// What an error means to us: kNotFound, kForbidden, kTooLarge and kInvalid concern one record or topic;
/// kUnavailable means that brokers are away.
ErrorCode code_of(rd_kafka_resp_err_t error);
/// The error with the library's description of it. `about` is a topic, or empty.
Error error_of(rd_kafka_resp_err_t error, std::string_view about, std::string_view text);

}  // namespace delayq::kafka
