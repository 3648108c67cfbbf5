#include "net/redis/deployment.h"

#include <utility>

namespace delayq::net::redis {

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
