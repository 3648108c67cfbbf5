#include "engine/redis/cold_tier.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "engine/redis/scripts.h"

namespace delayq::redis {

namespace {

/// Jobs in one call that reads them to be cooled, and their bytes. The next call follows when they are in the
/// store.
constexpr uint32_t kCooledPerCall = 500;
constexpr uint32_t kCooledBytesPerCall = 2U << 20;
constexpr uint32_t kWishesPerCall = 200;
constexpr uint32_t kWishedBytesPerCall = 4U << 20;
/// A wish that was not fulfilled is reported again after this time.
constexpr Millis kWishAgain{5'000};
/// A step that failed is tried again after this time.
constexpr Millis kRetry{1'000};
/// Records that are in work at the same time. A single larger one is accepted, too.
constexpr size_t kMostOpen = 2'000;
constexpr size_t kMostOpenBytes = size_t{16} << 20;

std::string name_of(const ColdPlace& place) {
  return fmt::format("step {}, partition {}, offset {}", place.step, place.partition, place.offset);
}

}  // namespace

/// A record that has come back, or that was fetched because its job needs it (`is_wished`).
struct ColdTier::Arrival {
  ColdPlace place;
  std::string value;
  ColdRecord record;  ///< views into `value`
  uint32_t shard = 0;
  bool is_wished = false;
  ColdPlace moved_to{};
  std::string_view body{};

  bool read() {
    const std::optional<ColdRecord> cold = read_cold(value);
    const auto stored = cold ? redis::read_record(cold->record) : std::nullopt;
    if (!stored || stored->cold) return false;
    record = *cold;
    body = stored->body;
    return true;
  }
};

/// Jobs of a shard that are being moved to the store.
struct ColdTier::Cooling {
  uint32_t shard = 0;
  bool has_more = false;
  bool has_failed = false;
  size_t puts = 0;  ///< without a reply
  uint32_t items = 0;
  Arguments arguments;  ///< of cool.lua
};

bool ColdTier::is_full() const { return open_ >= kMostOpen || open_bytes_ >= kMostOpenBytes; }

ColdTier::ColdTier(ColdStore& store, Redis redis, uint64_t seed)
    : store_(store), redis_(std::move(redis)), random_(seed), shards_(redis_.shards) {}

// ---- cool

void ColdTier::cool(Moment now, uint32_t shard) {
  now_ = now;
  if (shards_[shard].is_cooling) return;
  shards_[shard].is_cooling = true;
  Arguments arguments = redis_.arguments(now, shard);
  arguments.number(kCooledPerCall).number(kCooledBytesPerCall);
  redis_.run(scripts::kCooling, shard, arguments,
             [this, shard](const Result<resp::Value>& answer) { candidates_came(shard, answer); });
}

void ColdTier::candidates_came(uint32_t shard, const Result<resp::Value>& answer) {
  if (!answer.ok() || answer->items.size() < 6) {
    shards_[shard].is_cooling = false;
    if (answer.ok() && answer->items.size() >= 3 && answer->items[2].integer != 0) cool(now_, shard);
    return;
  }
  auto cooling = std::make_shared<Cooling>();
  cooling->shard = shard;
  cooling->has_more = answer->items[2].integer != 0;
  cooling->arguments = redis_.arguments(now_, shard);
  ++cooling->puts;  // until all are begun
  for (size_t i = 3; i + 2 < answer->items.size(); i += 3)
    put_candidate(cooling, answer->items[i].text, answer->items[i + 1].text, answer->items[i + 2].text);
  if (--cooling->puts == 0) finish_cooling(cooling);
}

void ColdTier::put_candidate(const std::shared_ptr<Cooling>& cooling, const std::string& topic,
                             const std::string& id, std::string_view bytes) {
  const std::optional<Record> record = read_record(bytes);
  if (!record || record->cold) return;
  const std::optional<uint32_t> step = store_.step_for(time_left(now_, record->due));
  if (!step) return;
  const uint32_t version = new_version();
  const std::string value = write_cold({redis_.deployment, topic, id, version, 0, bytes});
  ++cooling->puts;
  store_.put(now_, *step, id, value,
             [this, alive = std::weak_ptr(alive_), cooling, topic, id, version, sequence = record->sequence,
              pushed = record->pushed, size = record->body.size(),
              bytes = value.size()](const Result<ColdPlace>& place) {
               if (alive.expired()) return;
               count_put(place, bytes);
               const bool is_hopeless = !place.ok() && (place.error().code == ErrorCode::kTooLarge ||
                                                        place.error().code == ErrorCode::kInvalid);
               cooling->has_failed |= !place.ok() && !is_hopeless;
               if (place.ok() || is_hopeless) {
                 ++cooling->items;
                 Arguments& to = cooling->arguments;
                 to.text(topic).text(id).number(sequence).moment(pushed).number(version).number(0);
                 to.number(place.ok() ? int64_t{place->step} : -1);
                 to.number(place.ok() ? place->partition : 0).number(place.ok() ? place->offset : 0);
                 to.number(size);
               }
               if (--cooling->puts == 0) finish_cooling(cooling);
             });
}

void ColdTier::finish_cooling(const std::shared_ptr<Cooling>& cooling) {
  const auto end = [this, cooling](bool is_done) {
    shards_[cooling->shard].is_cooling = false;
    if (is_done && cooling->has_more && !cooling->has_failed) cool(now_, cooling->shard);
  };
  if (cooling->items == 0) return end(false);
  redis_.run(scripts::kCool, cooling->shard, cooling->arguments,
             [this, end](const Result<resp::Value>& answer) {
               for (size_t i = 2; answer.ok() && i < answer->items.size(); ++i)
                 figures_.cooled += answer->items[i].integer == 0 ? 1 : 0;
               end(answer.ok());
             });
}

// ---- bodies that are needed early, and look-ups

void ColdTier::read_at(const ColdBody& where, std::string topic, std::string id, Reply<Arriving> reply) {
  ++figures_.fetched;
  store_.fetch(
      where.place, [this, alive = std::weak_ptr(alive_), where, topic = std::move(topic), id = std::move(id),
                    reply = std::move(reply)](Result<std::optional<std::string>> value) mutable {
        if (alive.expired()) return;
        if (!value.ok()) {
          problem_ = value.error().detail;
          return reply(value.error());
        }
        auto arrival = std::make_shared<Arrival>();
        arrival->place = where.place;
        if (value->has_value()) arrival->value = std::move(**value);
        const ColdRecord& found = arrival->record;
        const bool is_it = value->has_value() && arrival->read() && found.deployment == redis_.deployment &&
                           found.topic == topic && found.id == id && found.version == where.version;
        if (is_it) return reply(std::move(arrival));
        ++figures_.lost_bodies;
        problem_ = fmt::format(
            "the body of {}/{} is not at its place ({}): was its topic deleted, or its retention shortened?",
            topic, id, name_of(where.place));
        reply(Error{ErrorCode::kNotFound, "fetch", problem_});
      });
}

void ColdTier::fetch(const ColdBody& where, std::string topic, std::string id, Reply<std::string> reply) {
  read_at(where, std::move(topic), std::move(id), [reply = std::move(reply)](Result<Arriving> found) mutable {
    if (!found.ok()) return reply(found.error());
    reply(std::string((*found)->body));
  });
}

void ColdTier::fulfil(Moment now, uint32_t shard) {
  now_ = now;
  if (shards_[shard].is_asking || is_full()) return;
  shards_[shard].is_asking = true;
  Arguments arguments = redis_.arguments(now, shard);
  arguments.number(kWishesPerCall).number(kWishAgain.count()).number(kWishedBytesPerCall);
  redis_.run(scripts::kWishes, shard, arguments,
             [this, shard](const Result<resp::Value>& answer) { wishes_came(shard, answer); });
}

void ColdTier::wishes_came(uint32_t shard, const Result<resp::Value>& answer) {
  shards_[shard].is_asking = false;
  if (!answer.ok() || answer->items.size() < 3) return;
  constexpr size_t kEach = 7;
  const std::vector<resp::Value>& said = answer->items;
  for (size_t i = 3; i + kEach <= said.size(); i += kEach) {
    ColdBody where;
    where.version = static_cast<uint32_t>(said[i + 2].integer);
    where.hops = static_cast<uint32_t>(said[i + 3].integer);
    where.place = {static_cast<uint32_t>(said[i + 4].integer), static_cast<int32_t>(said[i + 5].integer),
                   said[i + 6].integer};
    ++open_;
    read_at(where, said[i].text, said[i + 1].text, [this, shard](Result<Arriving> found) {
      --open_;
      if (!found.ok()) return;  // wishes.lua reports it again
      const Arriving& wished = *found;
      wished->shard = shard;
      wished->is_wished = true;
      begin(wished);
      shards_[shard].to_warm.push_back(wished);
    });
  }
  if (said[2].integer != 0) fulfil(now_, shard);
}

// ---- records that have come back

Moment ColdTier::tick(Moment now) {
  now_ = now;
  while (!retries_.empty() && retries_.begin()->first <= now) {
    const Arriving arrival = std::move(retries_.begin()->second);
    retries_.erase(retries_.begin());
    shards_[arrival->shard].to_peek.push_back(arrival);
  }
  Moment next = store_.tick(now);
  while (!is_full()) {
    std::vector<ColdStore::Record> records = store_.arrivals(now);
    if (records.empty()) break;
    for (ColdStore::Record& record : records) arrived(std::move(record));
    next = now;
  }
  flush();
  // While there is no room, the answers that make some wake the loop.
  if (is_full()) next = kNever;
  if (!retries_.empty()) next = std::min(next, retries_.begin()->first);
  return std::max(next, now);
}

bool ColdTier::poll() {
  const bool any = store_.poll();
  flush();
  return any;
}

void ColdTier::arrived(ColdStore::Record record) {
  auto arrival = std::make_shared<Arrival>();
  arrival->place = record.place;
  arrival->value = std::move(record.value);
  ++figures_.returned;
  figures_.returned_bytes += arrival->value.size();
  if (!arrival->read() || arrival->record.deployment != redis_.deployment) {
    ++figures_.foreign;
    return store_.finish(record.place);
  }
  arrival->shard = redis_.shard_of(arrival->record.id);
  begin(arrival);
  shards_[arrival->shard].to_peek.push_back(std::move(arrival));
}

void ColdTier::count_put(const Result<ColdPlace>& place, size_t bytes) {
  if (!place.ok()) {
    ++figures_.put_errors;
    problem_ = place.error().detail;
    return;
  }
  ++figures_.written;
  figures_.written_bytes += bytes;
}

void ColdTier::begin(const Arriving& arrival) {
  ++open_;
  open_bytes_ += arrival->value.size();
}

void ColdTier::finish(const Arriving& arrival) {
  --open_;
  open_bytes_ -= arrival->value.size();
  if (!arrival->is_wished) store_.finish(arrival->place);
}

void ColdTier::retry(const Arriving& arrival) {
  // A body that was needed early is reported again by wishes.lua.
  if (arrival->is_wished) return finish(arrival);
  retries_.emplace(now_ + kRetry, arrival);
}

void ColdTier::flush() {
  for (uint32_t shard = 0; shard < shards_.size(); ++shard) {
    Shard& it = shards_[shard];
    if (!it.to_peek.empty()) send_peek(shard, std::exchange(it.to_peek, {}));
    if (!it.to_note_moved.empty()) send_moved(shard, std::exchange(it.to_note_moved, {}));
    if (!it.to_warm.empty()) send_warm(shard, std::exchange(it.to_warm, {}));
  }
}

template <class Add, class Read>
void ColdTier::send(const net::redis::Script& script, uint32_t shard, const std::vector<Arriving>& arrivals,
                    Add add, Read read) {
  for (size_t first = 0; first < arrivals.size();) {
    Arguments arguments = redis_.arguments(now_, shard);
    std::vector<Arriving> some;
    while (first < arrivals.size() && some.size() < kItemsPerCall && arguments.bytes() < kBytesPerCall) {
      add(arguments, *arrivals[first]);
      some.push_back(arrivals[first++]);
    }
    redis_.run(script, shard, arguments,
               [this, some = std::move(some), read](const Result<resp::Value>& answer) {
                 const bool is_understood = answer.ok() && answer->items.size() == some.size() + 2;
                 for (size_t i = 0; i < some.size(); ++i) {
                   if (is_understood) {
                     read(some[i], answer->items[i + 2]);
                   } else {
                     retry(some[i]);
                   }
                 }
                 flush();
               });
  }
}

void ColdTier::send_peek(uint32_t shard, const std::vector<Arriving>& arrivals) {
  const auto add = [](Arguments& to, const Arrival& arrival) {
    to.view(arrival.record.topic).view(arrival.record.id);
    to.number(arrival.record.version).number(arrival.record.hops);
    to.number(arrival.place.step).number(arrival.place.partition).number(arrival.place.offset);
  };
  send(scripts::kPeek, shard, arrivals, add, [this](const Arriving& arrival, const resp::Value& due) {
    if (due.text.empty()) {
      ++figures_.stale;
      return finish(arrival);
    }
    const std::optional<uint32_t> step = store_.step_for(time_left(now_, read_moment(due.text)));
    if (!step) return shards_[arrival->shard].to_warm.push_back(arrival);
    move(arrival, *step);
  });
}

void ColdTier::move(const Arriving& arrival, uint32_t step) {
  ColdRecord record = arrival->record;
  ++record.hops;
  store_.put(now_, step, record.id, write_cold(record),
             [this, alive = std::weak_ptr(alive_), arrival](const Result<ColdPlace>& place) {
               if (alive.expired()) return;
               count_put(place, arrival->value.size());
               Shard& shard = shards_[arrival->shard];
               if (place.ok()) {
                 arrival->moved_to = *place;
                 return shard.to_note_moved.push_back(arrival);
               }
               const ErrorCode code = place.error().code;
               // The store has become stricter: the body goes back to Redis.
               if (code == ErrorCode::kTooLarge || code == ErrorCode::kInvalid)
                 return shard.to_warm.push_back(arrival);
               retry(arrival);
             });
}

void ColdTier::send_moved(uint32_t shard, const std::vector<Arriving>& arrivals) {
  const auto add = [](Arguments& to, const Arrival& arrival) {
    to.view(arrival.record.topic).view(arrival.record.id).number(0).number(0);
    to.number(arrival.record.version).number(arrival.record.hops + 1);
    const ColdPlace& place = arrival.moved_to;
    to.number(place.step).number(place.partition).number(place.offset).number(arrival.body.size());
  };
  send(scripts::kCool, shard, arrivals, add, [this](const Arriving& arrival, const resp::Value& outcome) {
    ++(outcome.integer == 0 ? figures_.moved : figures_.stale);
    finish(arrival);
  });
}

void ColdTier::send_warm(uint32_t shard, const std::vector<Arriving>& arrivals) {
  const auto add = [](Arguments& to, const Arrival& arrival) {
    to.view(arrival.record.topic).view(arrival.record.id);
    to.number(arrival.record.version).view(arrival.body);
  };
  send(scripts::kWarm, shard, arrivals, add, [this](const Arriving& arrival, const resp::Value& outcome) {
    ++(outcome.integer == 0 ? figures_.warmed : figures_.stale);
    finish(arrival);
  });
}

}  // namespace delayq::redis
