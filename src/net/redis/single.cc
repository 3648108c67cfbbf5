#include "net/redis/single.h"

#include <algorithm>

namespace delayq::net::redis {

Single::Single(LinkFactory& factory, const ClientOptions& options, LinkEvents& links,
               DeploymentEvents& events)
    : options_(options), events_(events) {
  for (size_t i = 0; i < options.connections; ++i) links_.push_back(factory.to_node(true, links));
  if (options.mode != Mode::kSentinel) return;
  SentinelEvents& heard = *this;
  sentinels_ = std::make_unique<SentinelWatch>(factory, options.addresses, options.master_name, heard);
}

void Single::start() {
  if (sentinels_ != nullptr) return sentinels_->start();
  for (const auto& link : links_) link->go_to(options_.addresses);
}

Link* Single::link_for(std::optional<uint16_t> slot) {
  return links_[slot.value_or(0) % links_.size()].get();
}

Link* Single::link_at(const Address&, uint16_t slot) { return link_for(slot); }

void Single::on_replica(Link& link) { link.drop("it became a replica"); }

void Single::on_ready(Link&) {
  if (sentinels_ != nullptr && is_connected()) sentinels_->calm();
  events_.on_change();
}

void Single::on_down(Link&) {
  if (sentinels_ != nullptr) sentinels_->look();
}

bool Single::is_connected() const {
  return std::all_of(links_.begin(), links_.end(), [](const auto& link) { return link->is_ready(); });
}

std::vector<Address> Single::places() const {
  const Address* const address = links_[0]->address();
  return address == nullptr ? std::vector<Address>() : std::vector{*address};
}

void Single::on_master(const Address& master) {
  for (const auto& link : links_) link->stay_at({master});
  events_.on_change();
}

void Single::on_sentinel_trouble(const Error& why) { events_.on_trouble(why); }

}  // namespace delayq::net::redis
