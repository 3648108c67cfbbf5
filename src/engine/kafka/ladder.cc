#include "engine/kafka/ladder.h"

#include <algorithm>
#include <charconv>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/duration.h"
#include "engine/redis/record.h"

namespace delayq::kafka {

namespace {

constexpr std::string_view kReleaseHeader = "delayq-release";
/// Of one read from the consumer. A partition that is to be paused has at most so much in memory.
constexpr size_t kRecordsPerRead = 200;
constexpr size_t kBytesPerRead = size_t{1} << 20;
constexpr int kReadsPerPoll = 8;
/// How much arrivals() returns.
constexpr size_t kArrivals = 500;
constexpr size_t kArrivalBytes = size_t{4} << 20;
constexpr Millis kCommitPeriod{1'000};

std::optional<Moment> release_of(const InputRecord& record) {
  for (const InputHeader& header : record.headers) {
    if (header.name != kReleaseHeader || !header.value) continue;
    int64_t ms = 0;
    const char* const end = header.value->data() + header.value->size();
    const auto [stop, problem] = std::from_chars(header.value->data(), end, ms);
    if (problem == std::errc{} && stop == end) return from_unix_ms(ms);
  }
  return std::nullopt;
}

std::string topic_of(const LadderOptions& options, Millis step) {
  return fmt::format("{}.delay.{}", options.prefix, format_duration(step));
}

Error of_topic(std::string_view topic, std::string_view what) {
  return {ErrorCode::kInvalid, "open", fmt::format("the Kafka topic {} {}", topic, what), {}};
}

/// Each partition of the topic must be in a group, and no group may have others.
Status check_groups(const TopicFacts& topic, const LadderOptions& options) {
  std::set<int32_t> named;
  for (const std::vector<int32_t>& group : options.partition_groups) named.insert(group.begin(), group.end());
  if (named.empty()) return {};
  std::vector<int32_t> unnamed;
  for (int32_t i = 0; i < topic.partitions; ++i) {
    if (named.erase(i) == 0) unnamed.push_back(i);
  }
  if (!unnamed.empty())
    return of_topic(
        topic.name,
        fmt::format("has {} partitions, and kafka.partition_groups does not name {}: nobody would "
                    "read them. Add them to a group",
                    topic.partitions, fmt::join(unnamed, ", ")));
  if (!named.empty())
    return of_topic(
        topic.name,
        fmt::format("has {} partitions, and kafka.partition_groups names {}: remove them there, or "
                    "add partitions to the topic",
                    topic.partitions, fmt::join(named, ", ")));
  return {};
}

}  // namespace

// ---- topics

std::vector<std::string> ladder_topics(const LadderOptions& options) {
  std::vector<std::string> topics;
  for (const Millis step : options.steps) topics.push_back(topic_of(options, step));
  return topics;
}

Status prepare_topics(Admin& admin, const LadderOptions& options, Millis timeout) {
  const std::vector<std::string> topics = ladder_topics(options);
  std::vector<NewTopic> wanted;
  for (size_t i = 0; i < topics.size(); ++i) {
    const Millis kept = options.steps[i] + options.outage;
    wanted.push_back({topics[i],
                      options.partitions,
                      options.replication,
                      {{"retention.ms", std::to_string(kept.count())},
                       {"retention.bytes", "-1"},
                       {"cleanup.policy", "delete"},
                       // So that a wrong clock of a server does not end the retention early.
                       {"message.timestamp.type", "LogAppendTime"},
                       {"max.message.bytes", std::to_string(options.record_bytes)}}});
  }
  if (Status status = admin.create(wanted, timeout); !status.ok()) return status;
  const auto facts = admin.describe(topics, timeout);
  if (!facts.ok()) return facts.error();
  for (const TopicFacts& topic : *facts) {
    const auto found = std::find(topics.begin(), topics.end(), topic.name);
    if (found == topics.end()) continue;
    const Millis needed = options.steps[static_cast<size_t>(found - topics.begin())] + options.outage;
    if (topic.cleanup != "delete")
      return of_topic(topic.name,
                      "has cleanup.policy " + topic.cleanup + ", which removes bodies: set it to delete");
    if (topic.retention && *topic.retention < needed)
      return of_topic(
          topic.name,
          fmt::format("keeps records for {}, and bodies wait there for {}: set its retention.ms to at least "
                      "{} (the step and kafka.outage), or lower kafka.outage",
                      format_duration(*topic.retention), format_duration(needed - options.outage),
                      needed.count()));
    if (topic.max_bytes)
      return of_topic(topic.name, fmt::format("keeps at most {} bytes, and more may wait there: set its "
                                              "retention.bytes to -1",
                                              *topic.max_bytes));
    if (Status status = check_groups(topic, options); !status.ok()) return status;
  }
  return {};
}

// ---- the ladder

Ladder::Ladder(LadderOptions options, Clients clients)
    : options_(std::move(options)), topics_(ladder_topics(options_)), clients_(std::move(clients)) {}

std::optional<uint32_t> Ladder::step_for(Millis left) const {
  for (auto step = static_cast<uint32_t>(options_.steps.size()); step-- > 0;) {
    if (options_.steps[step] + options_.horizon <= left) return step;
  }
  return std::nullopt;
}

void Ladder::put(Moment now, uint32_t step, std::string_view key, std::string_view value,
                 Reply<redis::ColdPlace> reply) {
  const std::string release = std::to_string(to_unix_ms(now + options_.steps[step]));
  const Header header{kReleaseHeader, release};
  kafka::Record record;
  record.topic = topics_[step];
  record.key = key;
  record.value = value;
  record.headers = {&header, 1};
  const uint64_t token = ++tokens_;
  if (const Status status = clients_.producer->send(record, token); !status.ok()) {
    answers_.push_back(
        [reply = std::move(reply), error = status.error()]() mutable { reply(std::move(error)); });
    return;
  }
  puts_[token] = {static_cast<uint32_t>(options_.steps[step].count()), std::move(reply)};
}

void Ladder::fetch(const redis::ColdPlace& place, Reply<std::optional<std::string>> reply) {
  // The step may be one that the ladder had before.
  clients_.reader->read(now_, topic_of(options_, Millis{place.step}), place.partition, place.offset,
                        std::move(reply));
}

std::vector<redis::ColdStore::Record> Ladder::arrivals(Moment now) {
  now_ = now;
  std::vector<Record> records;
  size_t bytes = 0;
  for (auto& [name, partition] : partitions_) {
    while (!partition.waiting.empty() && partition.waiting.front().release <= now) {
      if (records.size() >= kArrivals || bytes >= kArrivalBytes) return records;
      Waiting& first = partition.waiting.front();
      bytes += first.value.size();
      partition.waiting_bytes -= first.value.size();
      partition.open[first.offset] = first.release;
      records.push_back({{name.first, name.second, first.offset}, std::move(first.value)});
      partition.waiting.pop_front();
    }
  }
  pause_and_resume();
  return records;
}

void Ladder::finish(const redis::ColdPlace& place) {
  const auto found = partitions_.find({place.step, place.partition});
  if (found != partitions_.end()) found->second.open.erase(place.offset);
}

Moment Ladder::tick(Moment now) {
  now_ = now;
  if (now >= commit_at_ || commit_at_ - now > kCommitPeriod) commit();
  // The consumer wants to be polled every second; the engine's own work wakes the loop more often.
  Moment next = clients_.claims == nullptr ? kNever : clients_.claims->tick(now);
  for (const auto& [name, partition] : partitions_) {
    if (partition.position() > partition.committed) next = std::min(next, commit_at_);
    if (!partition.waiting.empty()) next = std::min(next, partition.waiting.front().release);
  }
  return std::max(next, now);
}

bool Ladder::poll() {
  std::vector<Confirmation> confirmed;
  bool any = clients_.producer->poll(confirmed);
  for (const Confirmation& each : confirmed) {
    const auto found = puts_.find(each.token);
    if (found == puts_.end()) continue;
    Put put = std::move(found->second);
    puts_.erase(found);
    if (each.error != nullptr) {
      put.reply(*each.error);
    } else {
      put.reply(redis::ColdPlace{put.step, each.partition, each.offset});
    }
  }
  auto answers = std::exchange(answers_, {});
  for (auto& give : answers) give();
  any |= !answers.empty();
  any |= clients_.reader->poll(now_);
  any |= read();
  // Now the offsets are committed, and others may begin behind them.
  if (clients_.claims != nullptr && clients_.consumer->is_closed()) clients_.claims->close(now_);
  return any;
}

bool Ladder::read() {
  if (now_ == Moment::min()) return false;  // what comes is compared with the time
  bool any = false;
  for (int i = 0; i < kReadsPerPoll; ++i) {
    const Polled polled = clients_.consumer->poll(kRecordsPerRead, kBytesPerRead);
    for (const InputRecord& record : polled.records) take(record);
    if (polled.rebalance) rebalance(*polled.rebalance);
    any |= !polled.records.empty() || polled.rebalance.has_value();
    pause_and_resume();
    if (polled.records.empty() && !polled.rebalance) break;
  }
  return any;
}

void Ladder::take(const InputRecord& record) {
  const auto name = name_of({std::string(record.topic), record.partition});
  const auto found = name ? partitions_.find(*name) : partitions_.end();
  if (found == partitions_.end()) return;
  Partition& partition = found->second;
  // Offsets that go back are those of a new topic with the same name.
  if (record.offset < partition.next || partition.next < 0) partition.committed = record.offset;
  partition.next = record.offset + 1;
  const std::optional<Moment> release = release_of(record);
  // A record without our header is of somebody else: it is skipped. So is one that would wait for longer than
  // its step: the records behind it would wait, too. If it is ours after all, because the clock was set back,
  // its body is read at its place when its job is due.
  if (!release || !record.value || redis::time_left(now_, *release) > Millis{name->first} + options_.horizon)
    return;
  partition.waiting.push_back({record.offset, *release, std::string(*record.value)});
  partition.waiting_bytes += record.value->size();
}

std::optional<Ladder::Name> Ladder::name_of(const PartitionId& id) const {
  const auto found = std::find(topics_.begin(), topics_.end(), id.topic);
  if (found == topics_.end()) return std::nullopt;
  const Millis step = options_.steps[static_cast<size_t>(found - topics_.begin())];
  return Name{static_cast<uint32_t>(step.count()), id.partition};
}

void Ladder::rebalance(const Rebalance& change) {
  if (change.kind == Rebalance::Kind::kRevoked) commit();
  for (const PartitionId& id : change.partitions) {
    const auto name = name_of(id);
    if (!name) continue;
    partitions_.erase(*name);
    if (change.kind == Rebalance::Kind::kAssigned) partitions_[*name].id = id;
  }
  if (change.kind == Rebalance::Kind::kRevoked) clients_.consumer->let_go();
}

void Ladder::pause_and_resume() {
  std::vector<PartitionId> pause;
  std::vector<PartitionId> resume;
  for (auto& [name, partition] : partitions_) {
    const bool waits = !partition.waiting.empty() && (partition.waiting.front().release > now_ ||
                                                      partition.waiting_bytes >= kBytesPerRead ||
                                                      partition.waiting.size() >= kRecordsPerRead);
    if (waits == partition.is_paused) continue;
    if (!waits && !partition.waiting.empty()) continue;  // first what is there
    partition.is_paused = waits;
    (waits ? pause : resume).push_back(partition.id);
  }
  if (!pause.empty()) clients_.consumer->pause(pause);
  if (!resume.empty()) clients_.consumer->resume(resume);
}

void Ladder::commit() {
  commit_at_ = now_ == Moment::min() ? now_ : now_ + kCommitPeriod;
  std::vector<Position> positions;
  for (auto& [name, partition] : partitions_) {
    const int64_t position = partition.position();
    if (position < 0 || position <= partition.committed) continue;
    partition.committed = position;
    positions.push_back({partition.id, position});
  }
  if (!positions.empty()) clients_.consumer->commit(positions);
}

void Ladder::close() {
  commit();
  clients_.consumer->close();
}

Millis Ladder::lag() const {
  Millis lag{0};
  for (const auto& [name, partition] : partitions_) {
    if (!partition.open.empty()) lag = std::max(lag, now_ - partition.open.begin()->second);
    if (!partition.waiting.empty()) lag = std::max(lag, now_ - partition.waiting.front().release);
  }
  return lag;
}

std::string_view Ladder::trouble() const {
  if (!clients_.producer->is_connected()) return clients_.producer->last_error();
  if (clients_.claims != nullptr && !clients_.claims->trouble().empty()) return clients_.claims->trouble();
  return clients_.consumer->trouble();
}

}  // namespace delayq::kafka
