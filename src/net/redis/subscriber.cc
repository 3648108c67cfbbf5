#include "net/redis/subscriber.h"

#include <utility>

namespace delayq::net::redis {

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

}  // namespace delayq::net::redis
