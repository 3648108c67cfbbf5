#include "net/redis/link.h"

#include <algorithm>
#include <utility>

namespace delayq::net::redis {

Millis reconnect_delay(const BackoffSettings& settings, int failures, uint64_t random) {
  const int doublings = std::min(failures - 1, 20);
  const auto bound = std::min(settings.base.count() << doublings, settings.cap.count());
  return Millis(static_cast<int64_t>(random % (static_cast<uint64_t>(std::max<int64_t>(bound, 0)) + 1)));
}

Link::Link(Loop& loop, ConnectionSettings settings, BackoffSettings backoff, uint64_t seed,
           LinkEvents& events)
    : loop_(loop),
      settings_(std::move(settings)),
      backoff_(backoff),
      random_(seed),
      events_(events),
      retry_(loop) {}

Link::~Link() {
  if (connection_ != nullptr) connection_->close();
}

void Link::go_to(std::vector<Address> places) {
  if (connection_ != nullptr) drop("the master is elsewhere now");
  places_ = std::move(places);
  place_ = 0;
  failures_ = 0;
  connect();
}

void Link::stay_at(std::vector<Address> places) {
  if (!places_.empty()) {
    const auto here = std::find(places.begin(), places.end(), places_[place_]);
    if (here != places.end()) {
      place_ = static_cast<size_t>(here - places.begin());
      places_ = std::move(places);
      return;
    }
  }
  go_to(std::move(places));
}

void Link::connect() {
  retry_.cancel();
  if (connection_ != nullptr) connection_->close();
  ConnectionEvents& events = *this;
  connection_ = std::make_shared<Connection>(loop_, settings_, places_[place_], events);
  connection_->start();
}

void Link::drop(std::string why) {
  if (connection_ == nullptr) return;
  connection_->abandon(std::move(why));
}

void Link::on_ready() {
  failures_ = 0;
  ++times_ready_;
  events_.on_ready(*this);
}

void Link::on_reply(Request request, resp::Value reply) {
  events_.on_reply(*this, std::move(request), std::move(reply));
}

void Link::on_message(std::string_view channel, std::string_view message) {
  events_.on_message(channel, message);
}

void Link::on_broken(const Error& why, std::vector<Request> unanswered) {
  connection_.reset();
  ++failures_;
  retry_later();
  events_.on_down(*this, why, std::move(unanswered));
}

void Link::retry_later() {
  retry_.set_after(reconnect_delay(backoff_, failures_, random_.next()), [this] {
    place_ = (place_ + 1) % places_.size();
    connect();
  });
}

LinkFactory::LinkFactory(Loop& loop, const ClientOptions& options, std::shared_ptr<TlsClient> tls)
    : loop_(loop), options_(options), tls_(std::move(tls)), random_(options.seed) {}

ConnectionSettings LinkFactory::common() const {
  ConnectionSettings settings;
  settings.tls = tls_;
  settings.server_name = options_.tls.server_name;
  settings.connect_timeout = options_.connect_timeout;
  settings.reply_timeout = options_.reply_timeout;
  settings.keep_alive = options_.keep_alive;
  return settings;
}

std::unique_ptr<Link> LinkFactory::make(ConnectionSettings settings, LinkEvents& events) {
  const BackoffSettings backoff{options_.backoff, options_.backoff_cap};
  return std::make_unique<Link>(loop_, std::move(settings), backoff, random_.next(), events);
}

std::unique_ptr<Link> LinkFactory::to_node(bool needs_master, LinkEvents& events) {
  ConnectionSettings settings = common();
  settings.greeting = {options_.user, options_.password, options_.database, needs_master, options_.oldest};
  return make(std::move(settings), events);
}

std::unique_ptr<Link> LinkFactory::to_listen(LinkEvents& events) {
  ConnectionSettings settings = common();
  settings.greeting = {options_.user, options_.password, 0, false, {}};
  settings.is_subscriber = true;
  return make(std::move(settings), events);
}

std::unique_ptr<Link> LinkFactory::to_sentinel(bool to_listen, LinkEvents& events) {
  ConnectionSettings settings = common();
  settings.greeting = {options_.sentinel_user, options_.sentinel_password, 0, false, {}};
  settings.is_subscriber = to_listen;
  return make(std::move(settings), events);
}

}  // namespace delayq::net::redis
