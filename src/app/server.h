#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "api/http/conversation.h"
#include "api/resp/conversation.h"
#include "app/redis_delivery.h"
#include "app/storage.h"
#include "core/served.h"
#include "delivery/delivery_loop.h"
#include "delivery/webhook/curl_caller.h"
#include "delivery/webhook/webhook_sink.h"
#include "net/listener.h"
#include "net/loop.h"
#include "queue/queue.h"

namespace delayq {

/// How jobs are called back.
struct WebhookOptions {
  webhook::WebhookSinkOptions calls;
  std::vector<std::string> allow;  ///< networks; none: all that are not refused
  std::vector<std::string> deny;
  std::string ca_file;
  bool skips_tls_check = false;
  std::string user_agent = "delayq";
  /// Told of each call that was no success; may be empty.
  std::function<void(const webhook::FailedCall&)> failed;
};

struct ServerOptions {
  StorageOptions storage;
  WebhookOptions webhook;
  RedisDeliveryOptions redis_delivery;
  /// Told of topics whose ready jobs cannot leave as their settings say, and what to do; may be empty.
  delivery::DeliveryLoop::Stuck stuck;
  QueueConfig queue;
  /// What the operator says of topics; goes before what was said at run time about the same things.
  std::map<std::string, Settings> topics;
  std::string resp_host = "127.0.0.1";
  uint16_t resp_port = 9278;  ///< 0: any free one
  std::string http_host = "127.0.0.1";
  uint16_t http_port = 9277;  ///< 0: any free one
  /// By which it may be asked over HTTP where no tokens are configured, besides http_host; see HostNames.
  std::vector<std::string> host_names;
  size_t max_connections = 20'000;
  net::SessionLimits session;
  net::AnswerLimits answers;
  std::vector<Token> tokens;                    ///< none: everybody may do everything
  std::optional<net::TlsFiles> tls;             ///< none: connections are not encrypted
  Millis idempotency = std::chrono::hours{24};  ///< how long answers are kept for those who ask again
  uint32_t metrics_topics = 200;                ///< with labels of their own
  std::vector<const http::Dialect*> dialects;   ///< on the HTTP port, besides HTTP v1
  Millis grace = std::chrono::seconds{10};      ///< for jobs that are being worked on when it is told to stop
  /// Told of each request that was answered; may be empty.
  std::function<void(const Served&)> served;
  bool tells_commands = false;  ///< of RESP, too
  /// Told of each that was turned away for who asked; may be empty.
  std::function<void(const Served&)> turned_away;
  /// Told that a turn of the loop is done; answers when the next must have been done by. May be empty.
  std::function<Moment(Moment now)> turned;
};

/// The server: an engine, the queue over it, and the connections, on one thread. The journal's disk work has
/// threads of its own.
class Server {
 public:
  /// Opens the storage (which may take a while: recovery) and listens.
  static Result<std::unique_ptr<Server>> open(ServerOptions options);
  ~Server();

  /// Serves until stop() has done its work.
  void run();
  /// Stops gracefully: no new jobs, a grace period for those handed out, everything on disk. The second call
  /// does not wait for that. May be called from any thread, and from a signal's handler thread.
  void stop();

  /// After run(): what the stop left behind; nothing when it was not waited for.
  const std::optional<Result<StopReport>>& stop_report() const { return stop_report_; }

  /// Other tokens, from now on and for those who are connected as well. On the loop's thread.
  /// Without tokens: everybody may do everything.
  bool is_open() const { return front_->access.is_open(); }
  void set_tokens(std::vector<Token> tokens) { front_->set_tokens(std::move(tokens)); }
  /// Other names by which it may be asked over HTTP, as HostNames has them.
  void set_host_names(std::vector<std::string> names);
  /// Other timeouts, bounds and secrets for calls that begin from now on.
  void set_calls(webhook::WebhookSinkOptions options) { webhooks_->set_options(std::move(options)); }
  /// Another Redis that jobs are written to, or other bounds. With an error everything stays as it is.
  Status set_redis_delivery(RedisDeliveryOptions options);
  /// What the operator says of topics now. What a topic cannot be set to is told to `failed`.
  void set_topics(const std::map<std::string, Settings>& topics,
                  const std::function<void(const std::string& topic, const Error&)>& failed);
  /// Reads the certificates again, for connections that come from now on. With an error everything stays as
  /// it is.
  Status reload_tls();

  std::string resp_address() const { return resp_->address(); }
  uint16_t resp_port() const { return resp_->port(); }
  std::string http_address() const { return http_->address(); }
  Storage& storage() { return *storage_; }
  net::Loop& loop() { return loop_; }

 private:
  explicit Server(ServerOptions options);
  Status start();
  Status start_webhooks();
  /// Where jobs leave to; after start_webhooks().
  Status start_deliveries();
  /// How the engine's own Redis is reached; null when it has none.
  const net::redis::ClientOptions* engine_redis() const;
  /// What the queue is to know of the Redis that jobs are written to.
  RedisOutlet redis_outlet() const;
  Status start_queue(Moment now);
  /// What a topic is to be set to for what the operator says of it; nothing when it says so already.
  std::optional<Settings> wanted(const std::string& topic, const Settings& said) const;
  Status listen_for_resp(Moment now);
  Status listen_for_http();
  net::Listener::Options listening(std::string host, uint16_t port, std::string refusal) const;
  /// The time by which jobs fall due: the machine's clock, or the one of where the jobs are.
  Moment now() const { return storage_->now(); }
  /// When that is by the machine's clock, which is what a loop waits by.
  Moment to_local(Moment moment) const;
  /// Does all there is to do, up to a bound, without looking at the sockets. Answers when to go on.
  Moment work();
  void begin_stop();
  http::ProcessFigures process_figures() const;

  Moment started_{};
  std::shared_ptr<net::TlsContext> tls_;

  ServerOptions options_;
  net::Loop loop_;
  std::unique_ptr<Storage> storage_;
  std::unique_ptr<Queue> queue_;
  std::unique_ptr<webhook::CurlCaller> caller_;
  std::unique_ptr<webhook::WebhookSink> webhooks_;
  std::unique_ptr<RedisDelivery> redis_delivery_;
  std::unique_ptr<delivery::DeliveryLoop> deliveries_;
  std::shared_ptr<api::Front> front_ = std::make_shared<api::Front>();
  std::unique_ptr<resp::Endpoint> resp_host_;
  std::unique_ptr<http::Endpoint> http_host_;
  std::unique_ptr<net::Listener> resp_;
  std::unique_ptr<net::Listener> http_;
  std::atomic<int> stops_asked_ = 0;
  int stops_begun_ = 0;
  bool is_stopped_ = false;
  std::optional<Result<StopReport>> stop_report_;
};

}  // namespace delayq
