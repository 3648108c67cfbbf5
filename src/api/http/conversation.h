#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include "api/conversation.h"
#include "api/http/dialect.h"
#include "api/http/idempotency.h"
#include "api/http/metrics.h"
#include "api/http/streams.h"
#include "core/address.h"
#include "delivery/webhook/call_book.h"
#include "net/http_reader.h"

namespace delayq::http {

/// What all HTTP conversations of a server share.
struct Endpoint {
  Queue& queue;
  std::function<Moment()> clock;
  std::string version;  ///< of delayq
  std::shared_ptr<api::Front> front = std::make_shared<api::Front>();
  size_t job_bytes = size_t{4} << 20;  ///< of one job's text in a batch
  IdempotencyBook idempotency{};
  std::function<ProcessFigures()> process = [] { return ProcessFigures(); };
  std::function<webhook::WebhookFigures()> webhooks = {};  ///< may be empty
  std::function<std::optional<RedisFigures>()> redis = [] { return std::nullopt; };
  /// The hosts that were called and the last failures, at most so many of each.
  std::function<webhook::CallbackReport(Moment now, size_t limit)> callbacks = [](Moment, size_t) {
    return webhook::CallbackReport();
  };
  std::function<std::optional<LadderFigures>()> ladder = [] { return std::nullopt; };
  /// Returns nothing when no jobs are delivered to Redis.
  std::function<std::optional<delivery::SinkFigures>()> redis_delivery = [] { return std::nullopt; };
  std::function<std::optional<delivery::SinkFigures>()> kafka_delivery = [] { return std::nullopt; };
  std::function<std::vector<intake::IntakeFigures>()> kafka_intakes = [] {
    return std::vector<intake::IntakeFigures>();
  };
  uint32_t metrics_topics = 200;  ///< with labels of their own
  Events events{};
  std::vector<const Dialect*> dialects{};  ///< besides HTTP v1
  HostNames names{};                       ///< of this server; checked when no tokens are configured
};

/// One HTTP/1.1 connection: requests become queue verbs, and the answers become responses, in the order of
/// the requests. What a request means is decided by the handler of its route (dialect.h). Requests may be
/// pipelined. Only a pop that waits and a request of several verbs hold up later requests, on this connection
/// alone. A request is admitted or refused when its head has arrived, before its body is read.
class Conversation final : public api::Conversation {
 public:
  Conversation(Endpoint& host, net::Connection& connection, net::HttpLimits limits = {});

  size_t read(std::string_view input) override;
  size_t needed() const override { return 1; }
  size_t kept() const override { return reader_.kept() + (pushes_ != nullptr ? pushes_->bytes() : 0); }
  size_t footprint() const override { return api::Conversation::footprint() + kept(); }
  bool wants_input() const override;
  bool will_want_input() const override { return api::Conversation::will_want_input() && stream_ == nullptr; }
  bool is_amid_request() const override { return reader_.is_amid_request(); }
  uint64_t requests() const override { return requests_; }
  void time_out() override;
  bool end_input() override;
  void hang_up() override;
  void check_again() override;
  ProtocolKind protocol() const override { return ProtocolKind::kHttp; }

  // ---- for an EventStream, which appends to output()
  /// False: the client has disconnected, or may not read on.
  bool can_stream() const { return connection_ != nullptr && !is_over_; }
  /// Whether more than `bytes` of the output have not been sent. REQUIRES: can_stream().
  bool is_behind(size_t bytes) const;
  /// REQUIRES: can_stream().
  void on_streamed() { connection_->on_output(); }

 private:
  friend class Responder;
  friend struct Call;

  /// The request that is being read.
  struct Current {
    const Dialect* dialect;
    Target target;
    Dialect::Match match;  ///< its names are views of `target`
    std::optional<Error> refusal;
  };
  /// What must be known about a request when it is answered.
  struct Asked {
    bool takes_gzip = false;
    bool is_head = false;          ///< to be answered without a body
    IdempotencyBook::Claim claim;  ///< null: it has no Idempotency-Key
    std::string verb;              ///< this and the rest are set only when requests are logged
    std::string target;
    std::string token;
    uint64_t bytes_in = 0;
    std::chrono::nanoseconds begun{};
    bool may_wait = false;
  };
  /// A request with an Idempotency-Key whose body arrives in pieces.
  struct Keyed {
    std::string name;  ///< of its key
    RequestDigest digest;
    IdempotencyBook::Claim claim;  ///< null: there is an answer, if it is the same request
  };

  std::shared_ptr<Conversation> self() { return std::static_pointer_cast<Conversation>(shared_from_this()); }
  void on_pop_dropped(ReplyPlace place) override { asked_.erase(place); }

  // ---- requests
  void begin_request(const net::HttpRequest& request);
  void end_request(const net::HttpRequest& request);
  Status admit(const net::HttpRequest& request);
  Status check_host(const net::HttpRequest& request) const;
  /// The rest of the request that is being read will not arrive.
  void give_up(const Error& error, int status);
  void call_route(const net::HttpRequest& request);
  /// Decides what is done with the body of a request that is answered without it.
  void pass_over_body(const net::HttpRequest& request);
  /// Of the request that is being read; null when there is none.
  const Dialect::Route* route() const { return current_ ? current_->match.route : nullptr; }
  bool is_open_to_all() const { return route() != nullptr && route()->scopes == 0; }
  bool comes_in_pieces() const { return route() != nullptr && route()->flow == Flow::kInPieces; }
  /// See Call.
  void receive(std::shared_ptr<PushStream> stream, ReplyPlace place);
  void begin_stream(std::shared_ptr<Stream> stream);

  // ---- answers
  /// A place for the answer to the request that is being read.
  ReplyPlace reserve();
  /// How large that answer may become.
  size_t most_answered() const;
  /// Refuses the request that is being read, and reports it if it was refused because of its caller. `status`
  /// is 0 when its handler refused.
  void turn_away(const Error& error, int status);
  /// The same without the report.
  void refuse_current(const Error& error, int status, std::string headers);
  void send_refusal(ReplyPlace place, const Error& error, Response response);
  void send(ReplyPlace place, Response response, std::string_view code = {});
  void log(const Asked& asked, int status, std::string_view code, size_t bytes);

  // ---- requests with an Idempotency-Key
  /// Sends the answer that the key already has, or notes that this request runs. True: do not call the
  /// handler.
  bool answer_again(const net::HttpRequest& request);
  bool answer_found(IdempotencyBook::Found found);
  /// The body of keyed_ has arrived.
  void end_keyed(std::string_view last_piece);

  Endpoint& host_;
  net::HttpReader reader_;
  Moment now_{};
  uint64_t requests_ = 0;  ///< whose whole body has arrived
  std::optional<Current> current_;
  bool is_closing_ = false;  ///< after the answer at last_place_
  std::optional<ReplyPlace> last_place_;
  std::shared_ptr<Stream> stream_;                ///< null: no response without an end was begun
  std::shared_ptr<PushStream> pushes_;            ///< that is arriving
  ReplyPlace pushes_place_ = 0;                   ///< of its answer
  IdempotencyBook::Claim claim_;                  ///< of the request whose handler is being called
  std::optional<Keyed> keyed_;                    ///< that is arriving
  absl::flat_hash_map<ReplyPlace, Asked> asked_;  ///< only requests about which something must be known
};

}  // namespace delayq::http
