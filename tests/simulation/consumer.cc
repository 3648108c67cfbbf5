#include "tests/simulation/consumer.h"

#include <algorithm>

#include <fmt/format.h>

#include "queue/leases.h"

namespace delayq::simulation {
namespace {

constexpr size_t kRememberedLeases = 40;
constexpr size_t kMostWaiting = 12;
constexpr WaiterId kNobody = UINT64_MAX;  // names no waiter: who delivers does not wait

std::string_view engine_part(std::string_view lease) { return parse_lease(lease)->ref.lease; }

}  // namespace

void Consumer::take_for_delivery() {
  Waiting waiting;
  waiting.waiter = kNobody;
  waiting.topics = {scene_.topic()};
  waiting.count = static_cast<uint32_t>(scene_.random().between(1, 4));
  waiting.outlet = Outlet::kCallback;
  waiting.until = scene_.now();
  DeliveryRequest request;
  request.topic = waiting.topics[0];
  request.outlet = waiting.outlet;
  request.count = waiting.count;
  request.lease = Millis{100 + scene_.random().below(20'000)};
  scene_.say([&] { return fmt::format("take for delivery {} count={}", waiting.topics[0], waiting.count); });
  const Scene::Ticket ticket = scene_.ask("take_for_delivery");
  scene_.queue().take_for_delivery(scene_.now(), request, [this, ticket](Result<PopAnswer> answer) {
    if (!scene_.answered(ticket)) return;
    if (answer.ok()) receive(ticket, *answer);
    waiting_.erase(ticket);
    if (!answer.ok()) scene_.check_error("take_for_delivery", answer.error());
  });
  waiting_.emplace(ticket, std::move(waiting));
}

void Consumer::give_back() {
  const std::string lease = some_lease();
  const GiveBackItem item{lease, scene_.now() + scene_.delay() - Millis{2'000}};
  scene_.say([&] { return fmt::format("give back {} until {}", lease, to_unix_ms(item.at)); });
  const Scene::Ticket ticket = scene_.ask("give_back");
  scene_.queue().give_back(scene_.now(), std::span(&item, 1), [this, ticket](const Result<uint64_t>& answer) {
    if (!scene_.answered(ticket)) return;
    if (!answer.ok()) scene_.check_error("give_back", answer.error());
  });
}

void Consumer::pop() {
  if (scene_.chance(20)) return take_for_delivery();
  Waiting waiting;
  const uint64_t topics = scene_.chance(70) ? 1 : scene_.random().between(1, 3);
  for (uint64_t i = 0; i < topics; ++i) waiting.topics.push_back(scene_.topic());
  waiting.count = static_cast<uint32_t>(scene_.random().between(1, 4));
  waiting.auto_ack = scene_.chance(15) && scene_.world().may_auto_ack();
  const std::vector<std::string_view> names(waiting.topics.begin(), waiting.topics.end());
  PopRequest request{names, waiting.count, {}, {}, waiting.auto_ack};
  if (scene_.chance(40) && waiting_.size() < kMostWaiting) request.wait = scene_.delay() % Millis{20'000};
  if (scene_.chance(60))
    request.lease = Millis{100 + scene_.random().below(scene_.chance(70) ? 20'000 : 500)};
  waiting.until = scene_.now() + request.wait;
  scene_.say([&] {
    return fmt::format("pop {} count={} wait={} lease={}{}", fmt::join(waiting.topics, ","), waiting.count,
                       request.wait.count(), request.lease ? request.lease->count() : -1,
                       waiting.auto_ack ? " auto-ack" : "");
  });
  const Scene::Ticket ticket = scene_.ask("pop");
  if (waiting_.empty()) clock_is_even_ = true;
  waiting.waiter = scene_.queue().pop(scene_.now(), request, [this, ticket](Result<PopAnswer> answer) {
    if (!scene_.answered(ticket)) return;
    if (answer.ok()) receive(ticket, *answer);
    waiting_.erase(ticket);
    if (!answer.ok()) scene_.check_error("pop", answer.error());
  });
  if (waiting.waiter != 0) waiting_.emplace(ticket, std::move(waiting));
}

void Consumer::receive(Scene::Ticket ticket, const PopAnswer& answer) {
  const auto found = waiting_.find(ticket);
  if (found == waiting_.end()) return scene_.fail("pop", "refused and served");
  const Waiting& waiting = found->second;
  if (answer.jobs.size() > waiting.count) return scene_.fail("pop", "more jobs than asked for");
  for (const TakenJob& taken : answer.jobs) {
    ++handed_over_;
    scene_.say([&] {
      return fmt::format("  handed over {}/{} attempt {} lease {}", taken.job.topic, taken.job.id,
                         taken.job.attempts, taken.lease);
    });
    if (std::find(waiting.topics.begin(), waiting.topics.end(), taken.job.topic) == waiting.topics.end()) {
      return scene_.fail("pop", "a job of another topic");
    }
    if (taken.job.outlet != waiting.outlet) return scene_.fail("pop", "a job of the other outlet");
    if (taken.lease.empty() != waiting.auto_ack)
      return scene_.fail("pop", "a lease where none is due, or none");
    if (!taken.lease.empty()) leases_.emplace_back(taken.lease);
  }
  if (leases_.size() > kRememberedLeases) {
    leases_.erase(leases_.begin(), leases_.end() - static_cast<ptrdiff_t>(kRememberedLeases));
  }
}

void Consumer::drop() {
  if (waiting_.empty()) return;
  auto chosen = waiting_.begin();
  std::advance(chosen, scene_.random().below(waiting_.size()));
  scene_.say([&] { return fmt::format("drop waiter {}", chosen->second.waiter); });
  // False: its answer is on the way.
  if (!scene_.queue().drop_waiter(scene_.now(), chosen->second.waiter)) return;
  scene_.withdraw(chosen->first);
  waiting_.erase(chosen);
}

std::string Consumer::some_lease() {
  if (leases_.empty() || scene_.chance(2)) return scene_.topic() + "/never-given-out";
  // Mostly the latest ones, which are likely to be current.
  const size_t back =
      scene_.random().below(scene_.chance(70) ? std::min<size_t>(5, leases_.size()) : leases_.size());
  return leases_[leases_.size() - 1 - back];
}

void Consumer::ack() {
  std::vector<std::string> leases;
  const uint64_t count = scene_.chance(70) ? 1 : scene_.random().between(2, 4);
  for (uint64_t i = 0; i < count; ++i) leases.push_back(some_lease());
  std::vector<AckItem> items;
  for (const std::string& lease : leases) {
    scene_.say([&] { return "ack " + lease; });
    items.push_back({lease, scene_.chance(20) ? "fine" : ""});
  }
  const Scene::Ticket ticket = scene_.ask("ack");
  scene_.queue().ack(scene_.now(), items, [this, ticket, leases](Result<std::vector<Status>> answer) {
    if (!scene_.answered(ticket)) return;
    if (!answer.ok()) return scene_.check_error("ack", answer.error());
    for (size_t i = 0; i < leases.size(); ++i) {
      const Status& each = (*answer)[i];
      if (!each.ok() && each.error().code != ErrorCode::kStaleLease) scene_.check_error("ack", each.error());
      if (each.ok() && !scene_.world().checked().has_promised(std::string(engine_part(leases[i])))) {
        scene_.fail("ack", "answered before the engine did");
      }
    }
  });
}

void Consumer::nack() {
  if (scene_.chance(15)) return give_back();
  const std::string lease = some_lease();
  NackItem item{lease, {}, {}, scene_.chance(15)};
  if (scene_.chance(50)) item.delay = scene_.delay();
  if (scene_.chance(60)) item.reason = scene_.chance(50) ? "connection refused" : "status 500";
  scene_.say([&] { return fmt::format("nack {}{}", lease, item.dead ? " dead" : ""); });
  const Scene::Ticket ticket = scene_.ask("nack");
  scene_.queue().nack(
      scene_.now(), {&item, 1}, [this, ticket, lease](Result<std::vector<Result<NackReceipt>>> answer) {
        if (!scene_.answered(ticket)) return;
        if (!answer.ok()) return scene_.check_error("nack", answer.error());
        const Result<NackReceipt>& each = answer->front();
        if (!each.ok() && each.error().code != ErrorCode::kStaleLease) {
          scene_.check_error("nack", each.error());
        }
        if (each.ok() && !scene_.world().checked().has_promised(std::string(engine_part(lease)))) {
          scene_.fail("nack", "answered before the engine did");
        }
      });
}

void Consumer::extend() {
  const std::string lease = some_lease();
  ExtendItem item{lease, {}};
  if (scene_.chance(70)) item.duration = Millis{100 + scene_.random().below(10'000)};
  scene_.say([&] { return fmt::format("extend {}", lease); });
  const Scene::Ticket ticket = scene_.ask("extend");
  scene_.queue().extend(scene_.now(), {&item, 1}, [this, ticket](Result<std::vector<Result<Moment>>> answer) {
    if (!scene_.answered(ticket)) return;
    if (!answer.ok()) return scene_.check_error("extend", answer.error());
    const Result<Moment>& each = answer->front();
    if (!each.ok() && each.error().code != ErrorCode::kStaleLease) scene_.check_error("extend", each.error());
  });
}

const memory::StoredJob* Consumer::find_job_for(const Waiting& waiting) const {
  for (const std::string& topic : waiting.topics) {
    const EffectiveSettings& settings = scene_.queue().effective_settings(topic);
    if (settings.paused || settings.rate.count != 0 || settings.concurrency != 0) continue;
    const memory::JobTable::Topic* found = scene_.world().model().jobs().find_topic(topic);
    if (found == nullptr || found->ready_for(Outlet::kTopic).empty()) continue;
    return found->ready_for(Outlet::kTopic).begin()->second;
  }
  return nullptr;
}

void Consumer::check_at_rest() {
  for (const auto& [ticket, waiting] : waiting_) {
    if (const memory::StoredJob* job = find_job_for(waiting)) {
      return scene_.fail("pop",
                         fmt::format("waiter {} waits for a job of {}, and there is {}", waiting.waiter,
                                     fmt::join(waiting.topics, ","), to_string(seen(*job))));
    }
    if (clock_is_even_ && waiting.until <= scene_.now()) {
      return scene_.fail("pop", fmt::format("{} waits longer than it wanted to", waiting.waiter));
    }
  }
}

}  // namespace delayq::simulation
