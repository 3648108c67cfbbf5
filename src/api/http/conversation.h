#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <absl/container/flat_hash_map.h>
#include <absl/functional/function_ref.h>

#include "api/conversation.h"
#include "api/http/batch.h"
#include "api/http/dialect.h"
#include "api/http/events.h"
#include "api/http/fields.h"
#include "api/http/idempotency.h"
#include "api/http/metrics.h"
#include "api/http/response.h"
#include "api/http/target.h"
#include "core/host_names.h"
#include "json/writer.h"
#include "net/http_reader.h"

namespace delayq::http {

/// What all conversations of a server share.
struct Host {
  Queue& queue;
  std::function<Moment()> clock;
  std::string version;  ///< of delayq
  std::shared_ptr<api::Front> front = std::make_shared<api::Front>();
  size_t job_bytes = size_t{4} << 20;  ///< of one job's text in a batch
  IdempotencyBook idempotency{};
  std::function<ProcessFigures()> process = [] { return ProcessFigures(); };
  std::function<webhook::WebhookFigures()> webhooks = {};  ///< may be empty
  std::function<std::optional<RedisFigures>()> redis = [] { return std::nullopt; };
  /// Nothing: jobs do not go there.
  std::function<std::optional<delivery::RedisSinkFigures>()> redis_delivery = [] { return std::nullopt; };
  uint32_t metrics_topics = 200;  ///< with labels of their own
  Events events{};
  std::vector<const Dialect*> dialects{};  ///< that are spoken here besides HTTP v1
  HostNames names{};                       ///< by which it is asked where no tokens are configured
};

/// One HTTP/1.1 connection: requests become queue verbs, and the answers responses, in the order of the
/// requests. Requests may be pipelined; only a pop that waits holds up what comes behind it, on this
/// connection alone. A request is admitted or refused when its head has come, before its body is read.
class Conversation final : public api::Conversation, public Watcher {
 public:
  Conversation(Host& host, net::Connection& connection, net::HttpLimits limits = {});

  size_t read(std::string_view input) override;
  size_t needed() const override { return 1; }
  size_t kept() const override { return reader_.kept() + (batch_ != nullptr ? batch_->bytes() : 0); }
  size_t footprint() const override { return api::Conversation::footprint() + kept(); }
  bool wants_input() const override;
  bool will_want_input() const override { return api::Conversation::will_want_input() && !watch_; }
  bool is_amid_request() const override { return reader_.is_amid_request(); }
  uint64_t requests() const override { return requests_; }
  void time_out() override;
  bool end_input() override;
  void hang_up() override;
  Moment watch(Moment now) override;
  void check_again() override;

  /// One request, taken apart. `names` are the parts of the path that the route leaves open.
  struct Call {
    const net::HttpRequest& request;
    const Target& target;
    std::span<const std::string_view> names;
  };
  using Handler = Status (Conversation::*)(const Call& call);
  struct Route {
    std::string_view method;
    std::string_view path;  ///< "/v1/topics/{topic}/jobs"
    Handler handler;
    Scopes scopes;  ///< one of these is needed; none: it is for everybody
    api::Reach reach;
  };
  /// What each of them takes and answers is in openapi.yaml.
  static std::span<const Route> routes();

 private:
  friend class Exchange;
  friend struct DialectCall;

  void on_pop_dropped(Place place) override { asked_.erase(place); }

  /// Appends a response's JSON and answers its status.
  using Write = absl::FunctionRef<int(json::Writer&)>;
  /// The request that is being read.
  struct Current {
    Target target;
    const Route* route = nullptr;
    const Dialect* dialect = nullptr;  ///< whose path it is; then this one counts, not `route`:
    const Dialect::Route* dialect_route = nullptr;
    std::vector<std::string_view> names;
    std::optional<Error> refusal;
    std::string allowed;  ///< the methods of a path, when it was asked for another
  };
  /// What must be known of a request when it is answered.
  struct Asked {
    bool takes_gzip = false;
    bool is_head = false;          ///< to be answered without a body
    IdempotencyBook::Claim claim;  ///< null: it has no Idempotency-Key
    std::string verb;              ///< this and the rest only where somebody wants to know
    std::string target;
    std::string token;
    uint64_t bytes_in = 0;
    std::chrono::nanoseconds begun{};
    bool may_wait = false;
  };

  /// A request with an Idempotency-Key whose body comes in pieces.
  struct Keyed {
    std::string name;  ///< of its key
    RequestDigest digest;
    IdempotencyBook::Claim claim;  ///< null: there is an answer, if it is the same request
  };

  /// Somebody who reads /v1/events here.
  struct Watch {
    Millis interval{};
    std::string topic;  ///< empty: all
    Moment next{};
    Moment sign_of_life{};
    bool is_asking = false;
    absl::flat_hash_map<std::string, uint64_t> seen;  ///< hashes of what was told last
  };

  std::shared_ptr<Conversation> self() { return std::static_pointer_cast<Conversation>(shared_from_this()); }

  // ---- the flow (conversation.cc)
  void begin_request(const net::HttpRequest& request);
  void end_request(const net::HttpRequest& request);
  Status admit(const net::HttpRequest& request);
  Status check_host(const net::HttpRequest& request) const;
  bool is_route_for_everybody() const;
  /// The request that is being read will never be whole.
  void give_up(const Error& error, int status);
  void call_route(const net::HttpRequest& request);
  /// Decides what becomes of the body of a request that is answered without it.
  void pass_over_body(const net::HttpRequest& request);
  /// Fills in the route and what belongs to it, if there is one.
  void find_current_route(const net::HttpRequest& request);
  bool has_route() const { return current_->route != nullptr || current_->dialect_route != nullptr; }
  bool comes_in_pieces() const;
  bool may_wait() const;
  /// The route of a target, with what its path leaves open; null when there is none for this method.
  static const Route* find_route(std::string_view method, const Target& target,
                                 std::vector<std::string_view>& names, std::string& allowed);
  static const Dialect::Route* find_dialect_route(const Dialect& dialect, std::string_view method,
                                                  const Target& target, std::string& allowed);

  // ---- answers (answering.cc)
  /// A place for the answer to the request that is being read.
  Place reserve();
  /// How large that answer may become.
  size_t most_answered() const;
  void answer(Place place, Write write);
  void reply(Write write);
  void problem(Place place, const Error& error) { problem(place, error, 0, {}); }
  /// With another status than the error's own, and further headers.
  void problem(Place place, const Error& error, int status, std::string headers);
  /// Says no to the request that is being read; with `status` 0, because its handler did.
  void turn_away(const Error& error, int status);
  /// The same without telling of who was turned away.
  void refuse_current(const Error& error, int status, std::string headers);
  void send_refusal(Place place, const Error& error, Response response);
  void send(Place place, Response response, std::string_view code = {});
  void tell(const Asked& asked, int status, std::string_view code, size_t bytes);
  /// A Reply<T> that sends what `write(json, value)` writes with the status it answers, or the problem.
  template <class T, class WriteValue>
  Reply<T> respond(WriteValue write) {
    return [self = self(), place = reserve(), write](Result<T> result) {
      if (!result.ok()) return self->problem(place, result.error());
      self->answer(place, [&](json::Writer& json) -> int {
        if constexpr (std::is_void_v<T>) {
          return write(json);
        } else {
          return write(json, *result);
        }
      });
    };
  }

  // ---- what was answered before (keyed.cc)
  /// Answers from the book, or notes that this request is running. True: it is not to be called.
  bool answer_again(const net::HttpRequest& request);
  bool answer_found(IdempotencyBook::Found found);
  /// The body of keyed_ has come.
  void end_keyed(std::string_view last_piece);

  // ---- producers (producing.cc)
  Status push(const Call& call);
  Status push_as(const Call& call);
  Status push_many(const Call& call);
  Status push_job(const Call& call, PushRequest& job);
  Status push_one(const PushRequest& job);
  Status cancel(const Call& call);
  Status cancel_group(const Call& call);
  Status reschedule(const Call& call);

  // ---- consumers (consuming.cc)
  Status pop_topic(const Call& call);
  Status pop(const Call& call);
  /// `is_list`: the request named them under "topics".
  Status pop_from(Fields& fields, std::vector<std::string_view> topics, bool is_list);
  /// The last field to be taken: those that the caller may use.
  Result<std::vector<std::string_view>> leases_of(Fields& fields) const;
  Status ack(const Call& call);
  Status nack(const Call& call);
  Status extend(const Call& call);

  // ---- looking around (looking.cc)
  Status get(const Call& call);
  Status list(const Call& call);
  Status topics(const Call& call);
  Status topic(const Call& call);
  Status forecast(const Call& call);
  Status totals(const Call& call);
  Status health(const Call& call);
  Status openapi(const Call& call);
  Status metrics(const Call& call);
  void send_metrics(Place place, Moment now, const TotalStats* totals, const TopicSummaries* topics);

  // ---- what changes, as it does (watching.cc)
  Status events(const Call& call);
  void tell_gone(const TopicSummaries& topics);
  TopicSummaries only_watched(const TopicStats& stats) const;
  void tell_changes(Moment now, const TotalStats* totals, const TopicSummaries* topics);
  Status readiness(const Call& call);
  int write_well(json::Writer& json) const;

  // ---- whole topics (operating.cc)
  Status change_settings(const Call& call);
  Status pause(const Call& call);
  Status resume(const Call& call);
  Status forget(const Call& call);
  Status purge(const Call& call);
  Status redrive(const Call& call);

  // ---- everything at once (transferring.cc)
  Status export_page(const Call& call);
  Status import_lines(const Call& call);
  Status backup(const Call& call);

  Host& host_;
  net::HttpReader reader_;
  Moment now_{};
  uint64_t requests_ = 0;  ///< that have come whole
  std::optional<Current> current_;
  bool is_closing_ = false;  ///< after the answer at last_place_
  std::optional<Place> last_place_;
  std::optional<Watch> watch_;
  std::shared_ptr<Batch> batch_;             ///< that is coming in
  Place batch_place_ = 0;                    ///< of its answer
  IdempotencyBook::Claim claim_;             ///< of the request that is being called
  std::optional<Keyed> keyed_;               ///< that is coming in
  absl::flat_hash_map<Place, Asked> asked_;  ///< only of those of which something must be known
};

/// A job's fields, as every answer that has jobs shows them.
void write_job(json::Writer& json, const Job& job, bool with_body);
/// A body under "body": as the JSON value that it is, else as text, else in base64.
void write_body(json::Writer& json, const Job& job);
/// What /v1/stats and /v1/topics show, and /v1/events when it changes.
void write_totals(json::Writer& json, const TotalStats& stats);
void write_topic(json::Writer& json, const TopicSummary& topic);
/// The members of a settings object.
void write_settings(json::Writer& json, const EffectiveSettings& settings);

}  // namespace delayq::http
