#include "net/redis/deployment.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "core/text.h"

namespace delayq::net::redis {

namespace {

using Type = resp::Value::Type;

/// How often the map of slots is asked for: while something is wrong,
constexpr Millis kOften{100};
/// and while all is well, since a slot may have moved that no command has asked for.
constexpr Millis kSeldom = std::chrono::seconds{30};

bool is_slot(const resp::Value& value) {
  return value.type == Type::kInteger && value.integer >= 0 && value.integer < kSlots;
}

}  // namespace

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

Result<std::vector<SlotRange>> slot_ranges(const resp::Value& reply, const Address& asked) {
  const Error odd{ErrorCode::kUnavailable, "redis", "CLUSTER SLOTS: not the reply of a cluster", {}};
  if (reply.type != Type::kArray) return odd;
  std::vector<SlotRange> ranges;
  for (const resp::Value& row : reply.items) {
    const bool has_master = row.items.size() >= 3 && row.items[2].items.size() >= 2;
    if (!has_master || !is_slot(row.items[0]) || !is_slot(row.items[1])) return odd;
    const resp::Value& host = row.items[2].items[0];
    const resp::Value& port = row.items[2].items[1];
    if (row.items[0].integer > row.items[1].integer || port.integer <= 0 || port.integer > 65535) return odd;
    const bool is_named = !host.text.empty() && host.text != "?";
    ranges.push_back({static_cast<uint16_t>(row.items[0].integer),
                      static_cast<uint16_t>(row.items[1].integer),
                      {is_named ? host.text : asked.host, static_cast<uint16_t>(port.integer)}});
  }
  return ranges;
}

Cluster::Cluster(LinkFactory& factory, const ClientOptions& options, LinkEvents& links,
                 DeploymentEvents& events)
    : factory_(factory), options_(options), links_(links), events_(events), next_(factory.loop()) {}

void Cluster::start() {
  for (const Address& seed : options_.addresses) node_at(seed).is_seed = true;
  refresh_later();
}

Cluster::Node& Cluster::node_at(const Address& address) {
  const auto [place, is_new] = nodes_.try_emplace(address);
  if (is_new) {
    place->second = std::make_unique<Node>();
    for (size_t i = 0; i < options_.connections; ++i) {
      // The replies of a node show its role for each slot.
      place->second->links.push_back(factory_.to_node(false, links_));
      place->second->links.back()->go_to({address});
    }
  }
  return *place->second;
}

Link* Cluster::link_for(std::optional<uint16_t> slot) {
  if (!slot) {
    for (const auto& [address, node] : nodes_) {
      if (node->is_master && node->links[0]->is_ready()) return node->links[0].get();
    }
    return nullptr;
  }
  Node* const owner = owners_[*slot];
  return owner == nullptr ? nullptr : owner->links[*slot % owner->links.size()].get();
}

Link* Cluster::link_at(const Address& address, uint16_t slot) {
  Node& node = node_at(address);
  return node.links[slot % node.links.size()].get();
}

bool Cluster::on_moved(uint16_t slot, const Address& to) {
  Node& node = node_at(to);
  node.is_master = true;
  owners_[slot] = &node;
  refresh();  // more slots have probably moved
  return true;
}

void Cluster::on_ready(Link&) {
  if (!is_covered_) refresh();
  events_.on_change();
}

void Cluster::on_down(Link&) {
  refresh();
  refresh_later();
}

bool Cluster::is_connected() const {
  if (!is_covered_) return false;
  return std::all_of(nodes_.begin(), nodes_.end(), [](const auto& each) {
    const Node& node = *each.second;
    return !node.is_master || std::all_of(node.links.begin(), node.links.end(),
                                          [](const auto& link) { return link->is_ready(); });
  });
}

std::vector<Address> Cluster::places() const {
  std::vector<Address> places;
  for (const auto& [address, node] : nodes_) {
    if (node->is_master) places.push_back(address);
  }
  return places;
}

Link* Cluster::any_ready_link() {
  std::vector<Link*> ready;
  for (const auto& [address, node] : nodes_) {
    if (node->links[0]->is_ready()) ready.push_back(node->links[0].get());
  }
  return ready.empty() ? nullptr : ready[turn_++ % ready.size()];
}

void Cluster::refresh() {
  if (is_refreshing_) return;
  Link* const link = any_ready_link();
  if (link == nullptr) return;  // on_ready() comes when there is one
  is_refreshing_ = true;
  const Address asked = *link->address();
  link->send(make_internal({"CLUSTER", "SLOTS"}, [this, asked](const Result<resp::Value>& reply) {
    is_refreshing_ = false;
    if (reply.ok()) {
      hear(*reply, asked);
    } else {
      events_.on_trouble(reply.error());
    }
    refresh_later();
  }));
}

void Cluster::refresh_later() {
  next_.set_after(is_connected() ? kSeldom : kOften, [this] {
    refresh();
    if (!is_refreshing_) refresh_later();
  });
}

void Cluster::hear(const resp::Value& reply, const Address& asked) {
  const Result<std::vector<SlotRange>> ranges = slot_ranges(reply, asked);
  if (!ranges.ok()) return events_.on_trouble(ranges.error());
  adopt(*ranges);
  events_.on_change();
}

void Cluster::adopt(const std::vector<SlotRange>& ranges) {
  for (const auto& [address, node] : nodes_) node->is_master = false;
  owners_.fill(nullptr);
  for (const SlotRange& range : ranges) {
    Node& node = node_at(range.master);
    node.is_master = true;
    std::fill(owners_.begin() + range.first, owners_.begin() + range.last + 1, &node);
  }
  is_covered_ = std::find(owners_.begin(), owners_.end(), nullptr) == owners_.end();
  drop_useless_nodes();
}

void Cluster::drop_useless_nodes() {
  retired_.clear();
  for (auto place = nodes_.begin(); place != nodes_.end();) {
    Node& node = *place->second;
    const bool is_busy = std::any_of(node.links.begin(), node.links.end(),
                                     [](const auto& link) { return link->outstanding() > 0; });
    if (node.is_master || node.is_seed || is_busy) {
      ++place;
      continue;
    }
    retired_.push_back(std::move(place->second));
    place = nodes_.erase(place);
  }
}

void Subscriber::add(Channel channel) {
  channels_.push_back(std::make_shared<const Channel>(std::move(channel)));
  if (link_ != nullptr && link_->is_ready()) subscribe(channels_.back());
  go();
}

void Subscriber::listen_at(std::vector<Address> places) {
  if (places.empty()) return;
  places_ = std::move(places);
  go();
}

void Subscriber::go() {
  if (channels_.empty() || places_.empty()) return;
  if (link_ == nullptr) link_ = factory_.to_listen(*this);
  link_->stay_at(places_);
}

void Subscriber::on_ready(Link&) {
  for (const auto& channel : channels_) subscribe(channel);
}

void Subscriber::subscribe(const SharedChannel& channel) {
  link_->send(make_internal({"SUBSCRIBE", channel->name}, [this, channel](const Result<resp::Value>& answer) {
    if (!answer.ok()) return events_.on_deaf(answer.error());
    events_.on_listening(channel);
  }));
}

void Subscriber::on_message(std::string_view name, std::string_view message) {
  for (const auto& channel : channels_) {
    if (channel->name == name) events_.on_heard(channel, message);
  }
}

namespace {

constexpr Millis kAskOften{200};
constexpr Millis kAskSeldom = std::chrono::seconds{10};
constexpr std::string_view kChannel = "+switch-master";

}  // namespace

SentinelWatch::SentinelWatch(LinkFactory& factory, std::vector<Address> sentinels, std::string master_name,
                             SentinelEvents& events)
    : sentinels_(std::move(sentinels)),
      master_name_(std::move(master_name)),
      events_(events),
      asking_(factory.to_sentinel(false, *this)),
      listening_(factory.to_sentinel(true, *this)),
      next_(factory.loop()) {}

void SentinelWatch::start() {
  asking_->go_to(sentinels_);
  listening_->go_to(sentinels_);
}

void SentinelWatch::look() {
  if (std::exchange(is_urgent_, true)) return;  // it already asks often
  ask();
}

void SentinelWatch::on_ready(Link& link) {
  if (&link == asking_.get()) return ask();
  // Asks once more: a server may have become master between the last answer and this subscription.
  link.send(make_internal({"SUBSCRIBE", kChannel}, [this](const Result<resp::Value>&) { ask(); }));
}

void SentinelWatch::on_reply(Link&, Request, resp::Value) {}

void SentinelWatch::on_message(std::string_view, std::string_view message) {
  // "<name> <old host> <old port> <new host> <new port>"
  if (message.substr(0, message.find(' ')) == master_name_) ask();
}

void SentinelWatch::on_down(Link& link, const Error& why, std::vector<Request>) {
  if (&link == asking_.get())
    events_.on_sentinel_trouble({why.code, why.op, fmt::format("sentinel {}", why.detail), {}});
}

void SentinelWatch::ask() {
  if (is_asking_ || !asking_->is_ready()) return;
  is_asking_ = true;
  asking_->send(make_internal({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", master_name_},
                              [this](const Result<resp::Value>& answer) {
                                is_asking_ = false;
                                hear(answer);
                                ask_later();
                              }));
}

void SentinelWatch::ask_later() {
  next_.set_after(is_urgent_ ? kAskOften : kAskSeldom, [this] { ask(); });
}

void SentinelWatch::hear(const Result<resp::Value>& answer) {
  if (!answer.ok()) {
    // A broken connection is reported by on_down(). Here the connection is open, and the sentinel refused the
    // question.
    if (asking_->is_ready())
      asking_->drop(
          fmt::format("it is not a Sentinel, or does not accept this client: {}", answer.error().detail));
    return;
  }
  uint16_t port = 0;
  if (answer->items.size() == 2) {
    const std::string& digits = answer->items[1].text;
    std::from_chars(digits.data(), digits.data() + digits.size(), port);
  }
  if (port != 0) return events_.on_master({answer->items[0].text, port});
  asking_->drop(fmt::format("it knows no master {}", quote(master_name_)));  // the next one may
}

}  // namespace delayq::net::redis
