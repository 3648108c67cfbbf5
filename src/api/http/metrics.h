#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/conversation.h"
#include "api/kafka/intake_figures.h"
#include "delivery/sink.h"
#include "delivery/webhook/call.h"
#include "queue/verbs.h"

namespace delayq::http {

/// Figures of the process.
struct ProcessFigures {
  uint64_t connections = 0;
  PerProtocol<uint64_t> refused{};  ///< connections, because there were too many
  uint64_t resident_bytes = 0;
  Moment started{};
};

/// Figures of the connection to the Redis that has the jobs.
struct RedisFigures {
  bool is_connected = false;
  uint64_t outstanding = 0;  ///< commands without an answer
  uint64_t commands = 0;     ///< since the start, like the next ones
  uint64_t errors = 0;
  uint64_t retries = 0;     ///< sent again because Redis said that nothing was done
  uint64_t connects = 0;    ///< connections that were established
  uint64_t reconnects = 0;  ///< of them to replace a lost one
  Millis clock_offset{0};   ///< Redis's clock is ahead of the machine's by this
};

/// Figures of the bodies that the kafka engine keeps in Kafka. Counters are since the start.
struct LadderFigures {
  bool is_connected = false;
  uint64_t partitions = 0;  ///< that this server reads
  Millis lag{0};            ///< how late the first record is that should have come back
  uint64_t in_work = 0;     ///< records that are being written, read or put back
  uint64_t written = 0;
  uint64_t written_bytes = 0;
  uint64_t returned = 0;
  uint64_t returned_bytes = 0;
  uint64_t cooled = 0;
  uint64_t moved = 0;
  uint64_t warmed = 0;
  uint64_t fetched = 0;
  uint64_t stale = 0;
  uint64_t foreign = 0;
  uint64_t refused = 0;
  uint64_t lost = 0;
};

struct Metrics {
  std::string_view version;
  Moment now{};
  const TotalStats* totals;      ///< null, like `topics`, when the engine cannot answer now
  const TopicSummaries* topics;  ///< those with labels of their own; the others are added up
  const PerProtocol<api::Traffic>& traffic;
  ProcessFigures process;
  webhook::WebhookFigures webhooks{};
  std::optional<RedisFigures> redis{};                    ///< none with other engines
  std::optional<LadderFigures> ladder{};                  ///< none with other engines
  std::optional<delivery::SinkFigures> redis_delivery{};  ///< none when jobs are not delivered to Redis
  std::optional<delivery::SinkFigures> kafka_delivery{};  ///< none without brokers
  std::vector<intake::IntakeFigures> kafka_intakes{};
};

/// All metrics, in Prometheus's text format. Its size has a bound: it depends on how many topics are given,
/// never on how many there are.
std::string metrics_text(const Metrics& metrics);

}  // namespace delayq::http
