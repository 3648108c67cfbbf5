#include "engine/kafka/partition_claims.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/redis/arguments.h"
#include "engine/redis/scripts.h"

namespace delayq::kafka {

namespace {

/// Rounds within the time for which a claim is held.
constexpr int kRounds = 5;

}  // namespace

PartitionClaims::PartitionClaims(net::redis::Client& client, AssignedConsumer& consumer, ClaimOptions options)
    : client_(client),
      consumer_(consumer),
      options_(std::move(options)),
      readers_(fmt::format("{}:{{delay}}:readers", options_.prefix)) {
  for (const std::vector<int32_t>& numbers : options_.groups) {
    Group& group = groups_.emplace_back();
    group.key = fmt::format("{}:{{delay}}:partitions:[{}]", options_.prefix, fmt::join(numbers, ","));
    for (const std::string& topic : options_.topics) {
      for (const int32_t number : numbers) group.partitions.push_back({topic, number});
    }
  }
}

Moment PartitionClaims::tick(Moment now) {
  if (is_closing_) return kNever;
  // The clock was set back: it must keep neither the claims nor the next round longer.
  held_until_ = std::min(held_until_, now + options_.hold);
  next_round_ = std::min(next_round_, now + options_.hold / kRounds);
  if (now >= held_until_) lose_all();
  if (!is_asking_ && now >= next_round_) {
    next_round_ = now + options_.hold / kRounds;
    send_round(now, false);
  }
  return std::max(now, next_round_);
}

void PartitionClaims::close(Moment now) {
  if (is_closing_) return;
  is_closing_ = true;
  send_round(now, true);
}

size_t PartitionClaims::held() const {
  return static_cast<size_t>(std::count_if(groups_.begin(), groups_.end(),
                                           [](const Group& each) { return each.state == State::kReading; }));
}

void PartitionClaims::send_round(Moment now, bool goes) {
  is_asking_ = true;
  redis::Arguments arguments;
  arguments.moment(now).text(options_.server).number(options_.hold.count()).number(goes ? 1 : 0);
  std::vector<std::string_view> keys{readers_};
  std::vector<size_t> deleted;
  for (size_t i = 0; i < groups_.size(); ++i) {
    keys.push_back(groups_[i].key);
    if (groups_[i].state != State::kStopping) continue;
    arguments.number(i + 1);
    deleted.push_back(i);
  }
  client_.run(redis::scripts::kReaders, keys, arguments.words(),
              [this, alive = std::weak_ptr(alive_), now, deleted](const Result<resp::Value>& answer) {
                if (!alive.expired()) round_came(answer, now, deleted);
              });
}

void PartitionClaims::round_came(const Result<resp::Value>& answer, Moment sent,
                                 const std::vector<size_t>& deleted) {
  is_asking_ = false;
  if (is_closing_) {
    is_closed_ = true;
    return;
  }
  if (!answer.ok() || answer->items.size() != groups_.size()) {
    trouble_ = answer.ok() ? "an answer of Redis is not understood" : answer.error().detail;
    return;
  }
  trouble_.clear();
  held_until_ = sent + options_.hold;
  for (const size_t i : deleted) groups_[i].state = State::kNone;
  for (size_t i = 0; i < groups_.size(); ++i) apply(groups_[i], answer->items[i].integer);
}

void PartitionClaims::apply(Group& group, int64_t said) {
  constexpr int64_t kMine = 1;
  constexpr int64_t kMustStop = 2;
  if (group.state == State::kNone && said == kMine) {
    consumer_.assign(group.partitions);
    group.state = State::kReading;
  } else if (group.state == State::kNone && said == kMustStop) {
    group.state = State::kStopping;
  } else if (group.state == State::kReading && said != kMine) {
    const bool is_lost = said != kMustStop;
    consumer_.unassign(group.partitions, is_lost);
    group.state = is_lost ? State::kNone : State::kStopping;
  }
}

void PartitionClaims::lose_all() {
  for (Group& group : groups_) {
    if (group.state == State::kReading) consumer_.unassign(group.partitions, true);
    group.state = State::kNone;
  }
}

}  // namespace delayq::kafka
