#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "api/traffic.h"
#include "delivery/redis/figures.h"
#include "delivery/webhook/figures.h"
#include "queue/verbs.h"

namespace delayq::http {

/// What a process knows of itself.
struct ProcessFigures {
  uint64_t connections = 0;
  uint64_t refused_http = 0;  ///< connections, for want of room
  uint64_t refused_resp = 0;
  uint64_t resident_bytes = 0;
  Moment started{};
};

struct Metrics {
  std::string_view version;
  Moment now{};
  const TotalStats& totals;
  const TopicSummaries& topics;  ///< those that get labels of their own; the others are told together
  const api::Traffic& http;
  const api::Traffic& resp;
  ProcessFigures process;
  webhook::Figures webhooks{};
  std::optional<redis_delivery::Figures> redis_delivery{};  ///< nothing: jobs do not go there
};

/// Everything that can be watched, in Prometheus's text format. Its size has a bound: it depends on how many
/// topics are given, never on how many there are.
std::string metrics_text(const Metrics& metrics);

}  // namespace delayq::http
