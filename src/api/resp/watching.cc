// Looking at the server, and ahead: SERVER, CONSUMERS and FORECAST. The names are those of HTTP's /v1/server,
// /v1/consumers and /v1/forecast; moments are Unix milliseconds, as in all replies.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "api/resp/conversation.h"
#include "core/limits.h"

namespace delayq::resp {

namespace {

constexpr uint32_t kUsualPops = 100;
constexpr uint32_t kUsualBins = 24;
constexpr Millis kUsualSpan = std::chrono::hours{24};

void entry(Writer& writer, std::string_view name, std::string_view text) {
  writer.bulk(name);
  writer.bulk(text);
}

void entry(Writer& writer, std::string_view name, uint64_t number) {
  writer.bulk(name);
  writer.integer(static_cast<int64_t>(std::min<uint64_t>(number, INT64_MAX)));
}

void entry(Writer& writer, std::string_view name, Moment moment) {
  writer.bulk(name);
  writer.integer(to_unix_ms(moment));
}

void write_texts(Writer& writer, std::string_view name, const std::vector<std::string_view>& texts) {
  writer.bulk(name);
  writer.array(texts.size());
  for (const std::string_view text : texts) writer.bulk(text);
}

/// A bound that there is none of is left out.
void write_limits(Writer& writer, const api::ServerFacts& facts) {
  const bool has_jobs = facts.max_jobs != QueueConfig::kUnbounded;
  const bool has_memory = facts.max_memory_bytes != QueueConfig::kUnbounded;
  writer.bulk("limits");
  writer.map(2 + (has_jobs ? 1 : 0) + (has_memory ? 1 : 0));
  entry(writer, "connections", facts.max_connections);
  if (has_jobs) entry(writer, "jobs", facts.max_jobs);
  if (has_memory) entry(writer, "memory_bytes", facts.max_memory_bytes);
  entry(writer, "disk_reserve_bytes", facts.disk_reserve_bytes);
}

void write_pop(Writer& writer, const api::WaitingPop& pop) {
  writer.map(pop.token.empty() ? 5 : 6);
  entry(writer, "client", pop.client);
  entry(writer, "protocol", name_of(pop.protocol));
  if (!pop.token.empty()) entry(writer, "token", pop.token);
  write_texts(writer, "topics", {pop.topics.begin(), pop.topics.end()});
  entry(writer, "since_ms", pop.since);
  entry(writer, "until_ms", pop.until);
}

void write_bins(Writer& writer, std::string_view name, const std::vector<uint64_t>& bins) {
  writer.bulk(name);
  writer.array(bins.size());
  for (const uint64_t count : bins) writer.integer(static_cast<int64_t>(count));
}

}  // namespace

void Conversation::about_server() {
  const api::ServerFacts& facts = front_.facts;
  const Token* const token = front_.access.token_of(caller_);
  std::vector<std::string_view> scopes;
  for (size_t i = 0; i < kScopeNames.size(); ++i) {
    const bool has = token == nullptr || (token->scopes & only(static_cast<Scope>(i))) != 0;
    if (has) scopes.push_back(kScopeNames[i]);
  }
  const TopicPatterns topics = front_.access.topics_of(caller_);
  const bool has_interval = facts.sync_interval > Millis::zero();
  size_t fields = 10;
  for (const bool there : {token != nullptr, !facts.durability.empty(), has_interval})
    fields += there ? 1 : 0;
  reply([&](Writer& writer) {
    writer.map(fields);
    entry(writer, "version", host_.version);
    entry(writer, "engine", facts.engine);
    entry(writer, "now_ms", now_);
    entry(writer, "started_ms", host_.started);
    entry(writer, "resp", facts.resp);
    entry(writer, "http", facts.http);
    if (!facts.durability.empty()) entry(writer, "durability", facts.durability);
    if (has_interval) entry(writer, "sync_interval_ms", static_cast<uint64_t>(facts.sync_interval.count()));
    write_limits(writer, facts);
    entry(writer, "tokens", uint64_t{front_.access.is_open() ? 0U : 1U});
    if (token != nullptr) entry(writer, "name", token->name);
    write_texts(writer, "scopes", scopes);
    write_texts(writer, "topics", {topics.begin(), topics.end()});
  });
}

Status Conversation::consumers(Arguments& arguments) {
  uint32_t count = kUsualPops;
  if (!arguments.empty()) {
    if (!arguments.take_word("COUNT")) return {};
    if (Status status = keep(arguments.small_number("COUNT"), count); !status.ok()) return status;
    if (count < 1 || count > Limits::kPageJobs)
      return invalid("COUNT",
                     fmt::format("COUNT: {} is out of range: use 1 to {}", count, Limits::kPageJobs));
  }
  const api::WaitingPops pops = api::waiting_pops(front_, count);
  reply([&](Writer& writer) {
    writer.map(3);
    entry(writer, "connections", uint64_t{host_.connections ? host_.connections() : 0});
    entry(writer, "waiting_total", uint64_t{pops.total});
    writer.bulk("waiting");
    writer.array(pops.first.size());
    for (const api::WaitingPop& pop : pops.first) write_pop(writer, pop);
  });
  return {};
}

Status Conversation::forecast(Arguments& arguments) {
  ForecastRequest request;
  request.bins = kUsualBins;
  std::optional<Moment> from;
  std::optional<Moment> to;
  while (!arguments.empty()) {
    Status status;
    if (arguments.take_word("TOPIC")) {
      status = keep(arguments.text("TOPIC"), request.topic);
    } else if (arguments.take_word("FROM")) {
      status = keep(arguments.moment("FROM"), from);
    } else if (arguments.take_word("TO")) {
      status = keep(arguments.moment("TO"), to);
    } else if (arguments.take_word("BINS")) {
      status = keep(arguments.small_number("BINS"), request.bins);
    } else {
      return {};
    }
    if (!status.ok()) return status;
  }
  request.from = from.value_or(now_);
  request.to = to.value_or(request.from + kUsualSpan);
  Status allowed = request.topic.empty() ? front_.access.check_all(caller_, only(Scope::kRead))
                                         : front_.access.check(caller_, only(Scope::kRead), request.topic);
  if (!allowed.ok()) return allowed;
  host_.queue.forecast(
      now_, request, kAllTopics,
      respond<ForecastReport>(
          [from = request.from, to = request.to](Writer& writer, const ForecastReport& forecast) {
            writer.map(6);
            entry(writer, "from_ms", from);
            entry(writer, "to_ms", to);
            entry(writer, "resolution_ms", static_cast<uint64_t>(forecast.jobs.resolution.count()));
            write_bins(writer, "bins", forecast.jobs.bins);
            write_bins(writer, "scheduled", forecast.scheduled);
            entry(writer, "scheduled_complete", uint64_t{forecast.has_all_scheduled ? 1U : 0U});
          }));
  return {};
}

}  // namespace delayq::resp
