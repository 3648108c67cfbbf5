#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/seeds/layout.h"
#include "core/result.h"
#include "kafka/client_options.h"

namespace delayq::cli::seeds {

/// The topics in which go-delay-queue with `-t kafka` keeps the ids of its jobs, one for each delay. The
/// value of a record is an id, its timestamp is when the job is due.
struct DelayTopics {
  kafka::ClientOptions client;
  std::string group{};  ///< with which it reads them; empty: not known
  std::vector<std::string> topics{};
};

/// `brokers` and `group` may be empty if `file`, the text of go-delay-queue's own configuration file, has
/// them. Without a file the topics have the names of its example.
Result<DelayTopics> delay_topics(std::string brokers, std::string group, std::string_view file);

/// Finds out with which group go-delay-queue reads the topics, if that is not known: the only one that has
/// committed offsets there. kInvalid: there are several.
Status find_group(DelayTopics& from);

/// The records that go-delay-queue has not handed over: those behind the offsets of its group. Adds their
/// number to `count`, which must outlive the result. Reads up to the ends that the topics have at the
/// beginning. kNotFound: there are no such topics.
DelayRecords records_in(DelayTopics from, uint64_t& count);

}  // namespace delayq::cli::seeds
