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
#include <absl/container/flat_hash_set.h>
#include <absl/functional/function_ref.h>

#include "api/http/fields.h"
#include "api/http/target.h"
#include "api/replies.h"
#include "json/writer.h"
#include "net/http_reader.h"
#include "net/protocol.h"
#include "queue/queue.h"

namespace delayq::http {

/// What all conversations of a server share.
struct Host {
  Queue& queue;
  std::function<Moment()> clock;
  std::string version;  ///< of delayq
};

/// One HTTP/1.1 connection: requests become queue verbs, and the answers responses, in the order of the
/// requests. Requests may be pipelined; only a pop that waits holds up what comes behind it, on this
/// connection alone.
class Conversation final : public net::Protocol, public std::enable_shared_from_this<Conversation> {
 public:
  Conversation(Host& host, net::Connection& connection, net::HttpLimits limits = {});

  size_t read(std::string_view input) override;
  size_t needed() const override { return 1; }
  bool wants_input() const override;
  bool is_over() const override { return is_over_ && replies_.waiting() == 0; }
  std::string& output() override { return replies_.output(); }
  bool end_input() override;
  void hang_up() override;

  /// One request, taken apart. `names` are the parts of the path that the route leaves open.
  struct Call {
    const net::HttpRequest& request;
    const Target& target;
    std::vector<std::string_view> names;
  };
  using Handler = Status (Conversation::*)(const Call& call);
  struct Route {
    std::string_view method;
    std::string_view path;  ///< "/v1/topics/{topic}/jobs"
    Handler handler;
  };
  /// What each of them takes and answers is in openapi.yaml.
  static std::span<const Route> routes();

 private:
  using Place = api::Replies::Place;
  /// Appends a response's JSON and answers its status.
  using Write = absl::FunctionRef<int(json::Writer&)>;

  // ---- the flow (conversation.cc)
  void handle(const net::HttpRequest& request);
  const Route* find_route(Call& call, std::string& allowed) const;
  void answer(Place place, Write write);
  void reply(Write write);
  void refuse(const Error& error) { problem(replies_.reserve(), error); }
  /// `status` is the error's own unless it is given; `more` are further header lines.
  void problem(Place place, const Error& error, int status = 0, std::string more = {});
  void send(Place place, int status, std::string_view content_type, std::string_view more,
            std::string_view body);
  /// A Reply<T> that sends what `write(json, value)` writes with the status it answers, or the problem.
  template <class T, class WriteValue>
  Reply<T> respond(WriteValue write) {
    return [self = shared_from_this(), place = replies_.reserve(), write](Result<T> result) {
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

  // ---- whole topics (operating.cc)
  Status change_settings(const Call& call);
  Status pause(const Call& call);
  Status resume(const Call& call);
  Status purge(const Call& call);
  Status redrive(const Call& call);

  Host& host_;
  net::Connection* connection_;  ///< null when the client is gone
  net::HttpReader reader_;
  api::Replies replies_;
  Moment now_{};
  bool is_over_ = false;
  absl::flat_hash_set<Place> heads_;           ///< asked for with HEAD: answered without a body
  absl::flat_hash_map<Place, WaiterId> pops_;  ///< that are not answered yet
  std::optional<Place> holds_up_;              ///< the one among them that waits
};

/// A job's fields, as every answer that has jobs shows them.
void write_job(json::Writer& json, const Job& job, bool with_body);
/// A body under "body": as the JSON value that it is, else as text, else in base64.
void write_body(json::Writer& json, const Job& job);
/// The members of a settings object.
void write_settings(json::Writer& json, const EffectiveSettings& settings);

}  // namespace delayq::http
