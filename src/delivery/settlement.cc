#include "delivery/settlement.h"

#include <algorithm>
#include <span>
#include <utility>

#include "core/limits.h"

namespace delayq::delivery {

namespace {

/// Hands `tell` what `to_request` makes of the items, as many at a time as the queue takes in one request.
template <class Request>
void in_batches(const auto& items, auto to_request, auto tell) {
  std::vector<Request> batch;
  batch.reserve(std::min<size_t>(items.size(), Limits::kBatchJobs));
  for (size_t begin = 0; begin < items.size(); begin += batch.size()) {
    batch.clear();
    const size_t end = std::min<size_t>(items.size(), begin + Limits::kBatchJobs);
    for (size_t i = begin; i < end; ++i) batch.push_back(to_request(items[i]));
    tell(std::span<const Request>(batch));
  }
}

}  // namespace

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
  in_batches<AckItem>(
      done,
      [](const Item& item) {
        return AckItem{item.lease, item.text};
      },
      [&](auto batch) { queue_.ack(now, batch, [](const Result<std::vector<Status>>&) {}); });
  in_batches<NackItem>(
      failed,
      [](const Item& item) {
        return NackItem{item.lease, item.delay, item.text, item.dead};
      },
      [&](auto batch) { queue_.nack(now, batch, [](const Result<std::vector<Result<NackReceipt>>>&) {}); });
  in_batches<GiveBackItem>(
      back,
      [](const Item& item) {
        return GiveBackItem{item.lease, item.at};
      },
      [&](auto batch) { queue_.give_back(now, batch, [](const Result<uint64_t>&) {}); });
  return !done.empty() || !failed.empty() || !back.empty();
}

}  // namespace delayq::delivery
