#include "delivery/kafka_sink.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/moment.h"
#include "delivery/sink.h"
#include "queue/carried_record.h"
#include "queue/job_options.h"

namespace delayq::delivery {

namespace {

/// Nothing more is taken while this many bytes are being written.
constexpr size_t kMostKafkaBytes = size_t{32} << 20;
/// How often to look whether a broker can be reached again.
constexpr Millis kBrokerLook = std::chrono::seconds{1};
/// How long a topic rests that cannot be written to: at first, and at most.
constexpr Millis kFirstLaneRest = std::chrono::seconds{1};
constexpr Millis kLongestLaneRest = std::chrono::seconds{30};
/// Above this, topics are forgotten that rested and were not written to since.
constexpr size_t kMostLanes = 10'000;

constexpr std::string_view kJobId = "delayq-job-id";
constexpr std::string_view kJobTopic = "delayq-job-topic";
constexpr std::string_view kJobDue = "delayq-job-due";
constexpr std::string_view kJobAttempt = "delayq-job-attempt";

std::optional<std::string_view> key_of(const Job& job, KafkaKey key) {
  switch (key) {
    case KafkaKey::kId:
      return job.id;
    case KafkaKey::kGroup:
      if (!job.group.empty()) return job.group;
      break;
    case KafkaKey::kNone:
      break;
  }
  return std::nullopt;
}

}  // namespace

bool KafkaSink::takes(Outlet outlet, const EffectiveSettings& topic) const {
  return outlet == Outlet::kTopic && topic.delivery == Delivery::kKafkaTopic;
}

Room KafkaSink::room(Moment now) {
  if (producer_ == nullptr || !producer_->is_connected() || producer_->is_broken())
    return {0, now + kBrokerLook};
  if (full_until_ > now) return {0, full_until_};
  const size_t used = ledger().size();
  if (used >= options_.in_flight || bytes_ >= kMostKafkaBytes) return {};
  return {static_cast<uint32_t>(options_.in_flight - used)};
}

LeaseTerms KafkaSink::lease_terms(const EffectiveSettings& /*topic*/) const {
  return {.length = options_.lease, .at_least = options_.lease / 2, .is_renewed = true};
}

SinkFigures KafkaSink::figures() const {
  const SinkCounts& counts = ledger().counts();
  const bool is_connected = producer_ != nullptr && producer_->is_connected() && !producer_->is_broken();
  return {counts.delivered, counts.failed, counts.given_back, ledger().size(), is_connected};
}

void KafkaSink::stop(Moment /*now*/) {
  // Without a broker they would only wait until the grace period ends.
  if (producer_ != nullptr && !producer_->is_connected()) producer_->drop();
}

void KafkaSink::clock_set_back(Millis by) {
  full_until_ -= by;
  for (const auto& [topic, lane] : lanes_) lane->rests_until -= by;
}

// ---- lanes

KafkaSink::Lane& KafkaSink::lane_of(std::string_view topic) {
  std::unique_ptr<Lane>& lane = lanes_[std::string(topic)];
  if (lane == nullptr) {
    lane = std::make_unique<Lane>();
    lane->topic = topic;
  }
  return *lane;
}

Claim KafkaSink::claim(const Origin& origin, uint32_t most, Moment now) {
  const std::string_view topic =
      origin.settings.kafka_topic.empty() ? origin.topic : std::string_view(origin.settings.kafka_topic);
  if (lanes_.size() >= kMostLanes) forget_rests(now);
  Lane& lane = lane_of(topic);
  if (lane.rests_until > now) return {.lane = lane.topic, .rests_until = lane.rests_until};
  const uint32_t used = lane.claimed + lane.in_flight;
  if (used >= most_of(lane)) {
    lane.is_waited_for = true;
    return {.lane = lane.topic};
  }
  const uint32_t jobs = std::min(most, most_of(lane) - used);
  lane.claimed += jobs;
  return {jobs, lane.topic};
}

void KafkaSink::forget_rests(Moment now) {
  for (auto lane = lanes_.begin(); lane != lanes_.end();) {
    const Lane& each = *lane->second;
    const bool is_over =
        each.claimed == 0 && each.in_flight == 0 && !each.is_freed && each.rests_until <= now;
    if (is_over) {
      lanes_.erase(lane++);
    } else {
      ++lane;
    }
  }
}

void KafkaSink::release_lanes() {
  for (Lane* const lane : std::exchange(freed_, {})) {
    lane->is_freed = false;
    const uint32_t used = lane->claimed + lane->in_flight;
    if (lane->is_waited_for && used < most_of(*lane)) {
      lane->is_waited_for = false;
      ledger().lane_has_room(lane->topic, most_of(*lane) - used);
    }
    if (lane->is_idle()) lanes_.erase(lanes_.find(lane->topic));
  }
}

// ---- writing

size_t KafkaSink::send(const Origin& origin, const Claim& claim, std::span<const SinkJob> jobs, Moment now) {
  Lane& lane = lane_of(claim.lane);
  lane.claimed -= claim.jobs;
  for (const SinkJob& each : jobs) {
    const Status status = write(origin, lane, each);
    if (status.ok()) continue;
    if (status.error().code == ErrorCode::kOverloaded) {
      ledger().give_back(each.ticket);
      full_until_ = now + kBrokerLook;
    } else {
      failed(lane, each.ticket, status.error(), now);
    }
  }
  if (!std::exchange(lane.is_freed, true)) freed_.push_back(&lane);  // fewer may have come than were claimed
  return 0;
}

Status KafkaSink::write(const Origin& origin, Lane& lane, const SinkJob& each) {
  const Job& job = *each.job;
  const EffectiveSettings& settings = origin.settings;
  const JobOptions options = decode_job_options(job.options);
  std::string text;
  kafka::Record record;
  record.topic = options.kafka_topic.empty() ? std::string_view(lane.topic) : options.kafka_topic;
  record.key = key_of(job, settings.kafka_key);
  switch (settings.kafka_content) {
    case KafkaContent::kBody:
      record.value = job.body;
      break;
    case KafkaContent::kJob:
      text = job_text(job);
      record.value = text;
      break;
    case KafkaContent::kId:
      record.value = job.id;
      break;
  }
  const fmt::format_int attempt(job.attempts);
  headers_.clear();
  if (settings.kafka_headers != KafkaHeaders::kNone) headers_.push_back({kJobId, job.id});
  if (settings.kafka_headers == KafkaHeaders::kAll) {
    headers_.push_back({kJobTopic, job.topic});
    headers_.push_back({kJobDue, due_text(job.due)});
    headers_.push_back({kJobAttempt, std::string_view(attempt.data(), attempt.size())});
  }
  if (!options.carried.empty()) carry(options.carried, settings.kafka_content, record);
  record.headers = headers_;
  uint32_t token = static_cast<uint32_t>(flights_.size());
  if (free_.empty()) {
    flights_.emplace_back();
  } else {
    token = free_.back();
    free_.pop_back();
  }
  if (Status status = producer_->send(record, token); !status.ok()) {
    free_.push_back(token);
    return status;
  }
  const size_t bytes = record.value ? record.value->size() : 0;
  Flight& flight = flights_[token];
  flight.ticket = each.ticket;
  flight.lane = &lane;
  flight.bytes = bytes;
  flight.is_alone = lane.suspects > 0 && lane.in_flight == 0;
  flight.target = options.kafka_topic;
  ++lane.in_flight;
  bytes_ += bytes;
  return {};
}

void KafkaSink::carry(std::string_view bytes, KafkaContent content, kafka::Record& record) {
  const std::optional<CarriedRecord> carried = decode_carried_record(bytes);
  if (!carried) return;
  record.key = carried->key;
  if (carried->is_tombstone && content == KafkaContent::kBody) record.value.reset();
  for (const CarriedRecord::Header& header : carried->headers) {
    // Of an earlier job: this one has its own.
    const bool is_own = header.name == kJobId || header.name == kJobTopic || header.name == kJobDue ||
                        header.name == kJobAttempt;
    if (!is_own) headers_.push_back({header.name, header.value});
  }
}

std::string_view KafkaSink::due_text(Moment due) {
  if (due != formatted_due_) {
    formatted_due_ = due;
    formatted_due_text_ = format_moment(due);
  }
  return formatted_due_text_;
}

// ---- confirmations

void KafkaSink::hear() {
  if (producer_ != nullptr) has_heard_ |= producer_->poll(heard_);
}

bool KafkaSink::poll(Moment now) {
  hear();
  if (!heard_.empty()) full_until_ = {};
  for (const kafka::Confirmation& each : heard_) confirmed(each, now);
  heard_.clear();
  release_lanes();
  return std::exchange(has_heard_, false);
}

void KafkaSink::confirmed(const kafka::Confirmation& confirmation, Moment now) {
  const auto token = static_cast<uint32_t>(confirmation.token);
  const Flight& flight = flights_[token];  // valid until the next write()
  free_.push_back(token);
  bytes_ -= flight.bytes;
  Lane& lane = *flight.lane;
  --lane.in_flight;
  if (!std::exchange(lane.is_freed, true)) freed_.push_back(&lane);
  if (is_suspect(flight, confirmation)) {
    ++lane.suspects;
    return ledger().give_back(flight.ticket);
  }
  if (flight.is_alone && lane.suspects > 0) --lane.suspects;
  if (confirmation.error != nullptr) return failed(lane, flight.ticket, *confirmation.error, now);
  ledger().answered();
  if (std::exchange(lane.rest, Millis::zero()) > Millis::zero() && log_) log_(lane.topic, {});
  ledger().done(flight.ticket, place_text(flight.target.empty() ? lane.topic : flight.target, confirmation));
}

std::string_view KafkaSink::place_text(std::string_view topic, const kafka::Confirmation& confirmation) {
  const fmt::format_int partition(confirmation.partition);
  const fmt::format_int offset(confirmation.offset);
  place_.assign(topic);
  place_.append("[").append(partition.data(), partition.size()).append("]@");
  place_.append(offset.data(), offset.size());
  return place_;
}

bool KafkaSink::is_suspect(const Flight& flight, const kafka::Confirmation& confirmation) {
  if (confirmation.error == nullptr || flight.is_alone) return false;
  const ErrorCode code = confirmation.error->code;
  return code == ErrorCode::kTooLarge || code == ErrorCode::kInvalid;
}

void KafkaSink::failed(Lane& lane, Ticket ticket, const Error& error, Moment now) {
  if (error.code != ErrorCode::kUnavailable) {
    ledger().answered();
    ledger().failed(ticket, fmt::format("kafka: {}", error.detail));
    return;
  }
  ledger().give_back(ticket);
  if (!producer_->is_connected() || producer_->is_broken()) {
    ledger().away(now);
    return;
  }
  // Other brokers can be reached: only those that lead this topic are away.
  if (lane.rests_until > now) return;  // one of many that were under way
  if (lane.rest == Millis::zero() && log_) log_(lane.topic, error.detail);
  lane.rest = std::clamp(lane.rest * 2, kFirstLaneRest, kLongestLaneRest);
  lane.rests_until = now + lane.rest;
  ledger().lane_is_closed(lane.topic);
}

}  // namespace delayq::delivery
