#include "api/http/metrics.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace delayq::http {

namespace {

/// Appends metrics as Prometheus reads them (text format 0.0.4).
class Exposition {
 public:
  explicit Exposition(std::string& out) : out_(out) {}

  /// Begins a metric; `type` is counter, gauge or histogram.
  void begin(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    append("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }

  /// `labels` as label() makes them; may be empty.
  template <class Value>
  void sample(std::string_view labels, Value value) {
    if (labels.empty()) return append("{} {}\n", name_, value);
    append("{}{{{}}} {}\n", name_, labels, value);
  }

  /// A metric with one sample.
  template <class Value>
  void one(std::string_view name, std::string_view type, std::string_view help, Value value) {
    begin(name, type, help);
    sample({}, value);
  }

  /// A whole histogram; a value of 1 in it is 1 / `scale` of the metric's unit.
  template <size_t kSize>
  void histogram(std::string_view name, std::string_view help, const std::array<uint64_t, kSize>& buckets,
                 uint64_t sum, double scale) {
    begin(name, "histogram", help);
    uint64_t seen = 0;
    for (size_t i = 0; i + 1 < kSize; ++i) {
      seen += buckets[i];
      append("{}_bucket{{le=\"{}\"}} {}\n", name,
             static_cast<double>(Histogram<kSize>::upper_bound(i)) / scale, seen);
    }
    seen += buckets[kSize - 1];
    append("{0}_bucket{{le=\"+Inf\"}} {1}\n{0}_sum {2}\n{0}_count {1}\n", name, seen,
           static_cast<double>(sum) / scale);
  }

  /// key="value", escaped where needed.
  static std::string label(std::string_view key, std::string_view value) {
    std::string text = fmt::format("{}=\"", key);
    for (const char c : value) {
      if (c == '\\' || c == '"') text += '\\';
      text += c == '\n' ? ' ' : c;
    }
    return text += '"';
  }

 private:
  template <class... Values>
  void append(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Values>(values)...);
  }

  std::string& out_;
  std::string_view name_;
};

/// The label of all topics without labels of their own; no topic can have this name.
constexpr std::string_view kOthers = "(others)";

/// The totals minus the topics that are shown: the figures of the others.
TopicSummary others_of(const Metrics& metrics) {
  TopicSummary others;
  others.topic = kOthers;
  for (size_t i = 0; i < kJobStateCount; ++i) {
    uint64_t left = metrics.totals->counts.by_state[i];
    for (const TopicSummary& topic : metrics.topics->topics) left -= std::min(left, topic.counts.by_state[i]);
    others.counts.by_state[i] = left;
  }
  for (size_t i = 0; i < kTallyCount; ++i) {
    const auto tally = static_cast<Tally>(i);
    uint64_t left = metrics.totals->tallies.of(tally);
    for (const TopicSummary& topic : metrics.topics->topics) left -= std::min(left, topic.tallies.of(tally));
    others.tallies.add(tally, left);
  }
  return others;
}

double seconds(Millis time) { return static_cast<double>(time.count()) / 1000; }

void write_topics(Exposition& out, const Metrics& metrics) {
  std::vector<std::string> labels;
  for (const TopicSummary& topic : metrics.topics->topics)
    labels.push_back(Exposition::label("topic", topic.topic));
  const bool has_others = !metrics.topics->cursor.empty();
  const TopicSummary others = has_others ? others_of(metrics) : TopicSummary();
  const auto each = [&](auto&& write) {
    for (size_t i = 0; i < labels.size(); ++i) write(labels[i], metrics.topics->topics[i]);
    if (has_others) write(Exposition::label("topic", others.topic), others);
  };
  out.begin("delayq_topic_jobs", "gauge", "Jobs of a topic by state.");
  each([&](const std::string& label, const TopicSummary& topic) {
    for (size_t i = 0; i < kJobStateCount; ++i)
      out.sample(fmt::format("{},state=\"{}\"", label, kJobStateNames[i]), topic.counts.by_state[i]);
  });
  out.begin("delayq_topic_events_total", "counter",
            "What happened to a topic's jobs since the server started.");
  each([&](const std::string& label, const TopicSummary& topic) {
    for (size_t i = 0; i < kTallyCount; ++i)
      out.sample(fmt::format("{},event=\"{}\"", label, kTallyNames[i]),
                 topic.tallies.of(static_cast<Tally>(i)));
  });
  out.begin("delayq_topic_oldest_ready_seconds", "gauge",
            "For how long the first ready job of a topic has been due.");
  for (size_t i = 0; i < labels.size(); ++i) {
    const auto& oldest = metrics.topics->topics[i].counts.oldest_ready;
    out.sample(labels[i], oldest ? std::max(0.0, seconds(metrics.now - *oldest)) : 0.0);
  }
  out.begin("delayq_topic_oldest_lease_seconds", "gauge",
            "For how long the longest held job of a topic is with its consumer.");
  for (size_t i = 0; i < labels.size(); ++i) {
    const auto& oldest = metrics.topics->topics[i].counts.oldest_lease;
    out.sample(labels[i], oldest ? std::max(0.0, seconds(metrics.now - *oldest)) : 0.0);
  }
  out.begin("delayq_topic_waiters", "gauge", "Consumers that wait for a job of a topic.");
  for (size_t i = 0; i < labels.size(); ++i) out.sample(labels[i], metrics.topics->topics[i].waiters);
}

void write_totals(Exposition& out, const TotalStats& totals) {
  out.begin("delayq_jobs", "gauge", "Jobs by state.");
  for (size_t i = 0; i < kJobStateCount; ++i)
    out.sample(Exposition::label("state", kJobStateNames[i]), totals.counts.by_state[i]);
  out.begin("delayq_events_total", "counter", "What happened to jobs since the server started.");
  for (size_t i = 0; i < kTallyCount; ++i)
    out.sample(Exposition::label("event", kTallyNames[i]), totals.tallies.of(static_cast<Tally>(i)));
  out.histogram("delayq_lateness_seconds", "How late jobs were handed over.", totals.lateness.buckets(),
                static_cast<uint64_t>(totals.lateness.sum().count()), 1e3);
  out.one("delayq_waiters", "gauge", "Consumers that wait for a job.", totals.waiters);
  out.one("delayq_topics", "gauge", "Topics that have jobs.", totals.usage.topics);
  if (totals.usage.cold_bodies)
    out.one("delayq_kafka_ladder_bodies", "gauge", "Jobs of the deployment whose bodies are in Kafka.",
            *totals.usage.cold_bodies);
  out.one("delayq_unanswered_bytes", "gauge", "Bytes of pushes that are not durable yet.",
          totals.unanswered_bytes);
}

void write_schedules(Exposition& out, uint64_t stored, const ScheduleFigures& figures) {
  out.one("delayq_schedules", "gauge", "Schedules, which make jobs again and again.", stored);
  out.begin(
      "delayq_schedule_occurrences_total", "counter",
      "Occurrences of schedules: made (a job), skipped (the job before was still there), or missed (too "
      "late).");
  out.sample(Exposition::label("outcome", "made"), figures.made);
  out.sample(Exposition::label("outcome", "skipped"), figures.skipped);
  out.sample(Exposition::label("outcome", "missed"), figures.missed);
  out.one("delayq_schedule_refusals_total", "counter",
          "Attempts to make a job of a schedule that a limit prevented; they are repeated.", figures.refused);
  out.histogram("delayq_schedule_lateness_seconds", "How long after its occurrence a job was made.",
                figures.lateness.buckets(), static_cast<uint64_t>(figures.lateness.sum().count()), 1e3);
}

void write_engine(Exposition& out, const EngineUsage& usage, const CommitFigures& commits) {
  out.histogram("delayq_commit_seconds", "How long a commit took to be written and synced.",
                commits.micros.buckets(), commits.micros.sum(), 1e6);
  out.histogram("delayq_commit_records", "How many changes a commit had.", commits.records.buckets(),
                commits.records.sum(), 1);
  out.one("delayq_memory_bytes", "gauge", "RAM of the engine's tables.", usage.memory_bytes);
  out.one("delayq_disk_bytes", "gauge", "What the engine's files occupy.", usage.disk_bytes);
  out.one("delayq_disk_live_bytes", "gauge", "The part of that which is still needed.", usage.live_bytes);
  if (usage.disk_free != UINT64_MAX)
    out.one("delayq_disk_free_bytes", "gauge", "Room on the engine's disk.", usage.disk_free);
  out.one("delayq_disk_written_bytes_total", "counter", "What was written, by commits and by cleaning.",
          usage.written_bytes);
  out.one("delayq_disk_copied_bytes_total", "counter", "Of that: what cleaning wrote again.",
          usage.copied_bytes);
  out.one("delayq_segments", "gauge", "Files of the journal.", usage.segments);
}

void write_apis(Exposition& out, const Metrics& metrics) {
  out.begin("delayq_requests_total", "counter", "Requests that have come.");
  for (const ProtocolKind kind : kProtocols)
    out.sample(Exposition::label("protocol", name_of(kind)), metrics.traffic[kind].requests);
  out.begin("delayq_refusals_total", "counter", "Requests that were refused, by the error's code.");
  for (const ProtocolKind kind : kProtocols) {
    for (const ErrorTraits& traits : kErrorTable) {
      out.sample(fmt::format("protocol=\"{}\",code=\"{}\"", name_of(kind), traits.name),
                 metrics.traffic[kind].refusals[static_cast<size_t>(traits.code)]);
    }
  }
  out.one("delayq_connections", "gauge", "Connections that are open.", metrics.process.connections);
  out.begin("delayq_connections_refused_total", "counter", "Connections that were refused for want of room.");
  for (const ProtocolKind kind : kProtocols)
    out.sample(Exposition::label("protocol", name_of(kind)), metrics.process.refused[kind]);
}

void write_webhooks(Exposition& out, const webhook::WebhookFigures& figures) {
  out.begin("delayq_webhook_calls_total", "counter", "Calls that ended, by the answer's class or the error.");
  for (size_t i = 0; i < webhook::kCallClassCount; ++i)
    out.sample(Exposition::label("result", webhook::kCallClassNames[i]), figures.calls[i]);
  out.begin("delayq_webhook_jobs_total", "counter",
            "Jobs that were called back: delivered, failed (once more or dead), or given back uncalled.");
  out.sample(Exposition::label("outcome", "delivered"), figures.delivered);
  out.sample(Exposition::label("outcome", "failed"), figures.failed);
  out.sample(Exposition::label("outcome", "given_back"), figures.given_back);
  out.one("delayq_webhook_in_flight", "gauge", "Calls under way.", figures.in_flight);
  out.one("delayq_webhook_waiting", "gauge", "Jobs that wait for a place at their host.", figures.waiting);
  out.one("delayq_webhook_open_hosts", "gauge", "Hosts that are left alone after many failures.",
          figures.open_hosts);
  out.histogram("delayq_webhook_call_seconds", "How long calls took.", figures.micros.buckets(),
                figures.micros.sum(), 1e6);
}

void write_redis(Exposition& out, const RedisFigures& figures) {
  out.one("delayq_redis_connected", "gauge", "1 while all masters of the Redis are connected.",
          figures.is_connected ? 1 : 0);
  out.one("delayq_redis_outstanding", "gauge", "Commands to Redis without an answer.", figures.outstanding);
  out.one("delayq_redis_commands_total", "counter", "Commands and scripts for Redis.", figures.commands);
  out.one("delayq_redis_errors_total", "counter", "Of them answered with an error, or not at all.",
          figures.errors);
  out.one("delayq_redis_retries_total", "counter",
          "Commands sent again because Redis said that it did nothing: moved, a script it did not have.",
          figures.retries);
  out.one("delayq_redis_connects_total", "counter", "Connections to Redis that were made.", figures.connects);
  out.one("delayq_redis_reconnects_total", "counter", "Of them in the place of one that was lost.",
          figures.reconnects);
  out.one("delayq_redis_clock_offset_seconds", "gauge",
          "By how much Redis's clock is ahead of the machine's.", seconds(figures.clock_offset));
}

void write_ladder(Exposition& out, const LadderFigures& figures) {
  out.one("delayq_kafka_ladder_connected", "gauge", "Whether a broker can be reached.",
          uint64_t{figures.is_connected});
  out.one("delayq_kafka_ladder_partitions", "gauge", "Partitions of the ladder that this server reads.",
          figures.partitions);
  out.one("delayq_kafka_ladder_lag_seconds", "gauge",
          "How late the first record of them is that should be back in Redis, or one step further.",
          std::max(0.0, seconds(figures.lag)));
  out.one("delayq_kafka_ladder_in_work", "gauge", "Records that are being written, read or put back.",
          figures.in_work);
  out.begin("delayq_kafka_ladder_records_total", "counter",
            "Records that were written, and that returned when their step was over.");
  out.sample(Exposition::label("event", "written"), figures.written);
  out.sample(Exposition::label("event", "returned"), figures.returned);
  out.begin("delayq_kafka_ladder_bytes_total", "counter", "Bytes of these records.");
  out.sample(Exposition::label("event", "written"), figures.written_bytes);
  out.sample(Exposition::label("event", "returned"), figures.returned_bytes);
  out.begin("delayq_kafka_ladder_bodies_total", "counter",
            "What happened to bodies: cooled (from Redis to Kafka), moved (a step further), warmed (back in "
            "Redis), fetched (read at their place), refused (by Kafka), or lost (not found in Kafka).");
  out.sample(Exposition::label("event", "cooled"), figures.cooled);
  out.sample(Exposition::label("event", "moved"), figures.moved);
  out.sample(Exposition::label("event", "warmed"), figures.warmed);
  out.sample(Exposition::label("event", "fetched"), figures.fetched);
  out.sample(Exposition::label("event", "refused"), figures.refused);
  out.sample(Exposition::label("event", "lost"), figures.lost);
  out.begin("delayq_kafka_ladder_dropped_total", "counter",
            "Records that returned and were dropped: stale (their job has ended, or has another body), or "
            "foreign (of another deployment).");
  out.sample(Exposition::label("reason", "stale"), figures.stale);
  out.sample(Exposition::label("reason", "foreign"), figures.foreign);
}

/// `name` is "redis" or "kafka"; the texts are those of that sink.
void write_sink(Exposition& out, std::string_view name, std::string_view what, std::string_view far_side,
                const delivery::SinkFigures& figures) {
  const std::string jobs = fmt::format("delayq_{}_delivery_jobs_total", name);  // `out` keeps a view of it
  out.begin(jobs, "counter",
            fmt::format("Jobs for {}: delivered, failed (refused there), or given back.", what));
  out.sample(Exposition::label("outcome", "delivered"), figures.delivered);
  out.sample(Exposition::label("outcome", "failed"), figures.failed);
  out.sample(Exposition::label("outcome", "given_back"), figures.given_back);
  out.one(fmt::format("delayq_{}_delivery_in_flight", name), "gauge", "Jobs that are being written there.",
          figures.in_flight);
  out.one(fmt::format("delayq_{}_delivery_connected", name), "gauge",
          fmt::format("Whether {} can be reached.", far_side), uint64_t{figures.connected});
}

/// One sample for each intake.
template <class Value>
void write_each_intake(Exposition& out, const std::vector<intake::IntakeFigures>& intakes,
                       std::string_view name, std::string_view type, std::string_view help, Value value) {
  out.begin(name, type, help);
  for (const intake::IntakeFigures& each : intakes)
    out.sample(Exposition::label("intake", each.name), value(each));
}

void write_intakes(Exposition& out, const std::vector<intake::IntakeFigures>& intakes) {
  using Figures = intake::IntakeFigures;
  const auto write = [&](std::string_view name, std::string_view type, std::string_view help, auto value) {
    write_each_intake(out, intakes, name, type, help, value);
  };
  out.begin("delayq_kafka_intake_records_total", "counter",
            "Records of an intake: pushed (now a job), kept (its job was there), or dead_lettered.");
  for (const Figures& each : intakes) {
    const std::string label = Exposition::label("intake", each.name);
    out.sample(fmt::format("{},outcome=\"pushed\"", label), each.pushed);
    out.sample(fmt::format("{},outcome=\"kept\"", label), each.kept);
    out.sample(fmt::format("{},outcome=\"dead_lettered\"", label), each.dead_lettered);
  }
  write("delayq_kafka_intake_read_total", "counter", "Records that were read.",
        [](const Figures& each) { return each.read; });
  write("delayq_kafka_intake_refusals_total", "counter",
        "Pushes of records that the queue refused; they are repeated.",
        [](const Figures& each) { return each.refused; });
  write("delayq_kafka_intake_lag", "gauge", "Records of the assigned partitions that are not done yet.",
        [](const Figures& each) { return each.lag; });
  write("delayq_kafka_intake_held", "gauge", "Records in memory that are not done yet.",
        [](const Figures& each) { return each.held; });
  write("delayq_kafka_intake_partitions", "gauge", "Partitions that are assigned to this server.",
        [](const Figures& each) { return each.partitions; });
  write("delayq_kafka_intake_paused", "gauge",
        "Of them: those that wait, because records can neither be stored nor written to the dead-letter "
        "topic.",
        [](const Figures& each) { return each.paused; });
  write("delayq_kafka_intake_connected", "gauge", "Whether nothing is known that keeps it from reading.",
        [](const Figures& each) { return uint64_t{each.is_connected}; });
}

}  // namespace

std::string metrics_text(const Metrics& metrics) {
  std::string text;
  Exposition out(text);
  out.begin("delayq_info", "gauge", "The server's version.");
  out.sample(Exposition::label("version", metrics.version), 1);
  if (metrics.totals != nullptr) {
    write_totals(out, *metrics.totals);
    write_schedules(out, metrics.totals->usage.schedules, metrics.totals->schedules);
    write_engine(out, metrics.totals->usage, metrics.totals->commits);
  }
  write_apis(out, metrics);
  write_webhooks(out, metrics.webhooks);
  if (metrics.redis) write_redis(out, *metrics.redis);
  if (metrics.ladder) write_ladder(out, *metrics.ladder);
  if (metrics.redis_delivery)
    write_sink(out, "redis", "lists and streams in Redis", "that Redis", *metrics.redis_delivery);
  if (metrics.kafka_delivery)
    write_sink(out, "kafka", "topics in Kafka", "a broker", *metrics.kafka_delivery);
  if (!metrics.kafka_intakes.empty()) write_intakes(out, metrics.kafka_intakes);
  if (metrics.totals != nullptr) write_topics(out, metrics);
  out.one("process_resident_memory_bytes", "gauge", "RAM of the process.", metrics.process.resident_bytes);
  out.one("process_start_time_seconds", "gauge", "When it started, in Unix time.",
          seconds(metrics.process.started.time_since_epoch()));
  return text;
}

}  // namespace delayq::http
