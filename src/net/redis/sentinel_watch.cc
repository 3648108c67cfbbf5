#include "net/redis/sentinel_watch.h"

#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "core/text.h"

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
