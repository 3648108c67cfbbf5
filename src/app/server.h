#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "api/http/conversation.h"
#include "api/resp/conversation.h"
#include "app/kafka.h"
#include "app/redis_delivery.h"
#include "app/storage.h"
#include "core/served.h"
#include "delivery/delivery_loop.h"
#include "delivery/webhook/curl_caller.h"
#include "delivery/webhook/webhook_sink.h"
#include "net/listener.h"
#include "net/loop.h"
#include "ops/config.h"
#include "queue/queue.h"

namespace delayq {

/// Keeps the stored schedules as the configuration says. A schedule of the configuration replaces one that a
/// client has set under the same name. A schedule that the configuration no longer names is left as it is,
/// and reported once. Schedules that make no jobs here, because their zone is missing for example, are
/// reported with each look.
class ConfiguredSchedules {
 public:
  using Wanted = std::map<std::string, Config::Schedule>;
  /// Gets what an operator should know.
  using Tell = std::function<void(bool is_bad, const std::string& what)>;

  /// `queue` must outlive it. After it is destroyed, answers of the queue have no effect.
  ConfiguredSchedules(Queue& queue, std::function<Moment()> now, Tell tell)
      : queue_(queue), now_(std::move(now)), tell_(std::move(tell)) {}

  /// Sets those that differ, and looks for others. A schedule that cannot be set is reported, and is tried
  /// again by the next apply(). Returns at once: the queue answers later.
  void apply(Wanted wanted);
  /// The two parts of apply(). The look reads all stored schedules, so a start leaves it until it serves.
  void set_all(Wanted wanted);
  void look_for_others() { look_through({}, {}); }
  /// Whether all schedules of the last apply() or set_all() are set, or were refused.
  bool is_settled() const { return unanswered_ == 0; }

 private:
  /// Stored schedules that make no jobs here.
  struct Broken {
    uint64_t count = 0;
    std::string first{};  ///< its name, and why
  };

  void set(const std::string& name);
  /// Reports stored schedules that are no longer wanted, a page at a time; at the end those that are broken.
  void look_through(std::string after, Broken broken);

  Queue& queue_;
  std::function<Moment()> now_;
  Tell tell_;
  Wanted wanted_;
  uint64_t generation_ = 0;  ///< of wanted_: an answer about an earlier one is ignored
  size_t unanswered_ = 0;
  std::set<std::string> told_;  ///< no longer in the configuration, and reported
  std::shared_ptr<const char> alive_ = std::make_shared<const char>();
};

/// How jobs are called back.
struct WebhookOptions {
  webhook::WebhookSinkOptions calls;
  std::vector<std::string> allow;  ///< networks; none: all that are not refused
  std::vector<std::string> deny;
  std::string ca_file;
  bool skips_tls_check = false;
  std::string user_agent = "delayq";
  /// Called for each call that failed; may be empty.
  std::function<void(const webhook::FailedCall&)> failed;
  webhook::WebhookSink::BreakerLog breaker;  ///< the same for breakers that open or close
};

/// An address at which clients of one protocol connect.
struct ListenAt {
  ProtocolKind protocol = ProtocolKind::kHttp;
  std::string host = "127.0.0.1";
  uint16_t port = 0;  ///< 0: any free one
};

struct ServerOptions {
  StorageOptions storage;
  WebhookOptions webhook;
  RedisDeliveryOptions redis_delivery;
  KafkaDeliveryOptions kafka_delivery;
  /// Called with topics whose ready jobs cannot be delivered as configured, and what to do; may be empty.
  delivery::DeliveryLoop::Stuck stuck;
  KafkaIntakes::Wanted kafka_intakes;
  intake::Intake::Tell intakes_tell = [](bool, const std::string&) {};
  QueueConfig queue;
  /// Topic settings of the configuration; they override the same settings made at run time.
  std::map<std::string, Settings> topics;
  ConfiguredSchedules::Wanted schedules;
  /// Called with what an operator should know about them.
  ConfiguredSchedules::Tell schedules_tell = [](bool, const std::string&) {};
  std::vector<ListenAt> listen;
  /// Accepted in Host headers if no tokens are configured, besides the hosts of the HTTP listeners; see
  /// HostNames.
  std::vector<std::string> host_names;
  size_t max_connections = 20'000;
  net::SessionLimits session;
  net::AnswerLimits answers;
  std::vector<Token> tokens;                    ///< none: every client may do everything
  std::optional<net::TlsFiles> tls;             ///< none: connections are not encrypted
  Millis idempotency = std::chrono::hours{24};  ///< how long answers are kept for repeated requests
  uint32_t metrics_topics = 200;                ///< with labels of their own
  std::string engine_name = "memory";           ///< as in the configuration, for people
  std::vector<const http::Dialect*> dialects;   ///< on the HTTP port, besides HTTP v1
  Millis grace = std::chrono::seconds{10};      ///< for jobs that are reserved when it stops
  /// Called for each answered request; may be empty.
  std::function<void(const Served&)> served;
  bool tells_commands = false;  ///< `served` is called for RESP commands, too
  /// Called for each request that was refused because of its caller; may be empty.
  std::function<void(const Served&)> turned_away;
  /// Called after each turn of the loop; returns when the next one must have ended. May be empty.
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

  /// After run(): the report of the stop; nothing when run() did not wait for it.
  const std::optional<Result<StopReport>>& stop_report() const { return stop_report_; }

  /// No tokens are configured: every client may do everything.
  bool is_open() const { return front_->access.is_open(); }
  /// Replaces the tokens, for connected clients as well. On the loop's thread.
  void set_tokens(std::vector<Token> tokens) { front_->set_tokens(std::move(tokens)); }
  /// Replaces the names that are accepted in Host headers; see HostNames.
  void set_host_names(std::vector<std::string> names);
  /// Replaces timeouts, limits and secrets, for new calls.
  void set_calls(webhook::WebhookSinkOptions options) { webhooks_->set_options(std::move(options)); }
  /// Replaces the Redis that jobs are written to, or its limits. On an error nothing changes.
  Status set_redis_delivery(RedisDeliveryOptions options);
  /// Replaces the configured topic settings. `failed` is called for each topic that does not accept them.
  void set_topics(const std::map<std::string, Settings>& topics,
                  const std::function<void(const std::string& topic, const Error&)>& failed);
  /// Replaces the configured schedules.
  void set_schedules(ConfiguredSchedules::Wanted schedules) { schedules_->apply(std::move(schedules)); }
  /// Replaces the configured intakes of Kafka topics: see KafkaIntakes::change().
  void set_kafka_intakes(KafkaIntakes::Wanted intakes);
  /// Reloads the certificates, for new connections. On an error nothing changes; the old certificates stay in
  /// use.
  Status reload_tls();

  /// The first listener of that protocol. REQUIRES: there is one.
  const net::Listener& listener(ProtocolKind protocol) const;
  Storage& storage() { return *storage_; }
  net::Loop& loop() { return loop_; }

 private:
  explicit Server(ServerOptions options);
  Status start();
  Status start_webhooks();
  /// Starts the other deliveries; call it after start_webhooks().
  Status start_deliveries();
  /// How the engine's own Redis is reached; null when it has none.
  const net::redis::ClientOptions* engine_redis() const;
  /// What the queue must know about the Redis that jobs are written to.
  RedisOutlet redis_outlet() const;
  Status start_queue(Moment now);
  /// The settings to store so that the configured ones are in effect; nullopt if they already are.
  std::optional<Settings> wanted(const std::string& topic, const Settings& said) const;
  Status start_intakes();
  void set_facts();
  void start_resp(Moment now);
  void start_http();
  Status listen(const ListenAt& where);
  /// Makes the protocol of a new connection.
  net::MakeProtocol speaker(ProtocolKind protocol);
  /// The time by which jobs fall due: the clock of this machine, or of the Redis that has the jobs.
  Moment now() const { return storage_->now(); }
  /// The same moment by this machine's clock, which the loop uses.
  Moment to_local(Moment moment) const;
  /// Does the work of one turn, up to a bound, without the sockets. Returns when to be called again.
  Moment work();
  void begin_stop();
  http::ProcessFigures process_figures() const;

  Moment started_{};
  std::shared_ptr<net::TlsContext> tls_;

  ServerOptions options_;
  net::Loop loop_;
  std::unique_ptr<Storage> storage_;
  std::unique_ptr<Queue> queue_;
  std::unique_ptr<ConfiguredSchedules> schedules_;
  std::unique_ptr<webhook::CurlCaller> caller_;
  std::unique_ptr<webhook::WebhookSink> webhooks_;
  std::unique_ptr<RedisDelivery> redis_delivery_;
  std::unique_ptr<KafkaDelivery> kafka_delivery_;
  std::unique_ptr<delivery::DeliveryLoop> deliveries_;
  std::unique_ptr<KafkaIntakes> intakes_;
  std::shared_ptr<api::Front> front_ = std::make_shared<api::Front>();
  std::unique_ptr<resp::Endpoint> resp_endpoint_;
  std::unique_ptr<http::Endpoint> http_endpoint_;
  struct Listening {
    ProtocolKind protocol;
    std::unique_ptr<net::Listener> listener;
  };
  std::vector<Listening> listeners_;
  std::atomic<int> stops_asked_ = 0;
  int stops_begun_ = 0;
  bool is_stopped_ = false;
  std::optional<Result<StopReport>> stop_report_;
};

}  // namespace delayq
