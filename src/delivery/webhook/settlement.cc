#include "delivery/webhook/settlement.h"

#include <utility>

namespace delayq::webhook {

void Settlement::done(std::string lease, std::string outcome) {
  done_.push_back({std::move(lease), std::move(outcome)});
}

void Settlement::failed(std::string lease, std::string reason, std::optional<Millis> retry_after) {
  failed_.push_back({std::move(lease), std::move(reason), retry_after});
}

void Settlement::dead(std::string lease, std::string reason) {
  failed_.push_back({std::move(lease), std::move(reason), std::nullopt, true});
}

void Settlement::give_back(std::string lease, Moment at) {
  back_.push_back({std::move(lease), {}, std::nullopt, false, at});
}

bool Settlement::send(Moment now) {
  const auto done = std::exchange(done_, {});
  const auto failed = std::exchange(failed_, {});
  const auto back = std::exchange(back_, {});
  if (!done.empty()) {
    std::vector<AckItem> items;
    items.reserve(done.size());
    for (const Item& item : done) items.push_back({item.lease, item.text});
    queue_.ack(now, items, [](const Result<std::vector<Status>>&) {});
  }
  if (!failed.empty()) {
    std::vector<NackItem> items;
    items.reserve(failed.size());
    for (const Item& item : failed) items.push_back({item.lease, item.delay, item.text, item.dead});
    queue_.nack(now, items, [](const Result<std::vector<Result<NackReceipt>>>&) {});
  }
  if (!back.empty()) {
    std::vector<GiveBackItem> items;
    items.reserve(back.size());
    for (const Item& item : back) items.push_back({item.lease, item.at});
    queue_.give_back(now, items, [](const Result<uint64_t>&) {});
  }
  return !done.empty() || !failed.empty() || !back.empty();
}

}  // namespace delayq::webhook
