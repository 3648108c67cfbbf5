#include "queue/recoverer.h"

#include <algorithm>
#include <iterator>

#include "queue/failures.h"

namespace delayq {

namespace {

constexpr std::string_view kReason = "lease ran out";
constexpr Millis kPauseAfterError = std::chrono::seconds{1};

}  // namespace

void Recoverer::recover(std::vector<LeaseInfo> leases) {
  std::vector<NackRequest> requests;
  requests.reserve(leases.size());
  for (const LeaseInfo& info : leases) {
    const TopicPtr topic = context_.topics.find(info.topic);
    const Verdict verdict =
        judge({info.options, info.attempts, std::nullopt, false},
              topic == nullptr ? defaults_ : *topic->settings, context_.now, random_.next());
    NackRequest& request = requests.emplace_back();
    request.lease = {info.topic, info.lease};
    request.retry_at = verdict.retry_at;
    request.keep = verdict.keep;
    request.reason = kReason;
    request.expired = true;
  }
  auto kept = std::make_unique<std::vector<LeaseInfo>>(std::move(leases));
  context_.engine.nack(context_.now, requests,
                       [this, kept = std::move(kept)](const Result<std::vector<NackOutcome>>& outcomes) {
                         if (outcomes.ok()) return settle(*kept, *outcomes);
                         std::move(kept->begin(), kept->end(), std::back_inserter(again_));
                         again_at_ = context_.now + kPauseAfterError;
                       });
}

void Recoverer::settle(const std::vector<LeaseInfo>& leases, const std::vector<NackOutcome>& outcomes) {
  for (size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i] == NackOutcome::kStale) continue;
    const TopicPtr topic = context_.topics.find(leases[i].topic);
    context_.topics.count(topic.get(), Tally::kExpired, 1);
    if (outcomes[i] == NackOutcome::kDead) context_.topics.count(topic.get(), Tally::kDied, 1);
    if (outcomes[i] == NackOutcome::kCancelled) context_.topics.count(topic.get(), Tally::kCancelled, 1);
    hand_over_.lease_ended(topic);
  }
}

Moment Recoverer::tick() {
  // A clock that went back must not make the pause longer.
  if (!again_.empty()) again_at_ = std::min(again_at_, context_.now + kPauseAfterError);
  if (!again_.empty() && again_at_ <= context_.now) {
    again_at_ = kNever;
    recover(std::exchange(again_, {}));
  }
  return again_.empty() ? kNever : again_at_;
}

}  // namespace delayq
