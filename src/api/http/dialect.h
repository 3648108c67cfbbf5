#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/functional/function_ref.h>

#include "api/conversation.h"
#include "api/http/fields.h"
#include "core/error.h"
#include "json/writer.h"
#include "net/http_reader.h"
#include "queue/queue.h"

namespace delayq::http {

// ---- responses

/// A response before it is written as bytes.
struct Response {
  int status = 200;
  std::string_view content_type = "application/json";  ///< a constant
  std::string headers;                                 ///< further ones, each with its line's end
  std::string body;
  std::string_view cache = "no-store";  ///< Cache-Control; a constant
  /// The body is compressed already. It is sent plain to clients that do not accept that.
  bool is_gzipped = false;
};

/// How a response is written.
struct Manner {
  bool may_compress = false;     ///< the client accepts gzip; small bodies are not compressed
  bool leaves_out_body = false;  ///< the request was a HEAD
  bool closes = false;           ///< it is the last one on its connection
};

/// Appends the response in HTTP/1.1.
void write_response(std::string& out, const Response& response, const Manner& manner);

/// Whether an Accept-Encoding header allows gzip.
bool accepts_gzip(std::string_view accept_encoding);

// ---- problems

/// The same error, where the request has another name for the field than the queue: "ids" for "id". Other
/// errors are returned as they are.
Error renamed(Error error, std::string_view queues, std::string_view requests);

/// Writes the members of a problem, which is a whole answer or one result of many: status, code and detail;
/// and field, known and retry_after_ms where the error has them.
void write_problem(json::Writer& json, const Error& error, int status);
inline void write_problem(json::Writer& json, const Error& error) {
  write_problem(json, error, traits_of(error.code).http_status);
}

/// The whole answer, as in RFC 9457. `status` may be more exact than the error's code.
void write_problem_document(json::Writer& json, const Error& error, int status);

std::string_view reason_phrase(int status);

// ---- requests, and who answers them

/// A request's target, taken apart: "/v1/topics/a%20b/jobs?limit=5" is {"v1", "topics", "a b", "jobs"} and
/// limit=5.
struct Target {
  std::vector<std::string> path;
  std::vector<std::pair<std::string, std::string>> query;

  /// The first value of that name.
  std::optional<std::string_view> find(std::string_view name) const;
};

/// kInvalid for broken %-escapes and for what is not a path.
Result<Target> parse_target(std::string_view text);

class Conversation;
class Stream;
class PushStream;
struct Dialect;
struct Endpoint;

/// Sends the answer to one request. It is copied into whatever waits for the queue. Exactly one of its
/// sending functions is called, once.
class Responder {
 public:
  Queue& queue() const;
  Moment now() const { return now_; }

  void send(Response response) const;
  /// Sends JSON: `write` appends it and returns the status.
  void send_json(absl::FunctionRef<int(json::Writer&)> write) const;
  /// Refuses the request in the words of its dialect.
  void refuse(const Error& error) const;
  /// Refuses it with `response`. The error is for logs, counters and headers.
  void refuse(const Error& error, Response response) const;
  /// Asks for jobs. `reply` ends with send() or refuse(). A pop that waits holds up later requests on its
  /// connection, and ends when the connection does.
  void pop(const PopRequest& request, Reply<PopAnswer> reply) const;

  /// A Reply<T> that sends what `write(json, value)` appends, with the status that it returns, or refuses
  /// with the error.
  template <class T, class WriteValue>
  Reply<T> respond(WriteValue write) const {
    return [responder = *this, write = std::move(write)](Result<T> result) {
      if (!result.ok()) return responder.refuse(result.error());
      responder.send_json([&](json::Writer& json) -> int {
        if constexpr (std::is_void_v<T>) {
          return write(json);
        } else {
          return write(json, *result);
        }
      });
    };
  }

  // ---- REQUIRES for the following: Call::accept_steps() made this object.
  /// Whether the caller may do something that needs one of `scopes` to this topic.
  Status check(Scopes scopes, std::string_view topic) const;
  /// Looks for a live job by its id alone, in the topics of the caller: a caller does not learn which ids
  /// exist in other topics.
  void find(std::string_view id, Reply<std::optional<FoundJob>> reply) const;
  /// The same, also among the jobs that are kept as done or dead.
  void find_kept_too(std::string_view id, Reply<std::optional<FoundJob>> reply) const;

 private:
  friend struct Call;
  /// What a request of several verbs keeps: later requests of the connection wait for it.
  struct Held {
    api::Caller caller;
    Steps steps;
  };
  Responder(std::shared_ptr<Conversation> conversation, const Dialect& dialect, std::shared_ptr<Held> held);

  std::shared_ptr<Conversation> conversation_;
  const Dialect* dialect_;
  api::ReplyPlace place_;
  Moment now_;
  std::shared_ptr<Held> held_;
};

/// One request, taken apart. Valid until its handler returns.
struct Call {
  Conversation& conversation;
  const Dialect& dialect;
  const net::HttpRequest& request;
  const Target& target;
  std::span<const std::string_view> names;  ///< the parts of the path that the route leaves open

  Queue& queue() const;
  Moment now() const;
  Endpoint& host() const;
  const api::Access& access() const;
  const api::Caller& caller() const;

  /// The fields of a JSON body. A query is refused.
  Result<Fields> json_fields() const { return Fields::of_json(request.body, target.query); }
  /// The fields of the JSON body of a POST; of other methods, the values of the query.
  Result<Fields> fields() const;
  Status expect_no_query() const { return Fields::expect_none(target.query); }
  /// Neither a query nor fields in the body.
  Status expect_nothing() const { return Fields::expect_none(request.body, target.query); }
  /// Whether the caller may do something that needs one of `scopes` to this topic.
  Status check(Scopes scopes, std::string_view topic) const {
    return access().check(caller(), scopes, topic);
  }
  /// Whether the caller may ask that an id exists in no other topic, which tells about all topics.
  Status check_unique() const { return access().check_unique(caller()); }

  /// Accepts the request: from now on it is answered by the Responder, and the handler returns OK. To be
  /// called at most once.
  Responder accept() const;
  /// The same for a request that needs several verbs one after the other: later requests of the connection
  /// wait until it is answered.
  Responder accept_steps() const;
  /// The body goes to `stream` as it arrives; `responder` answers in the end.
  void receive(std::shared_ptr<PushStream> stream, const Responder& responder) const;
  /// Accepts the request with a response that ends with the connection; `stream` writes it.
  void begin_stream(std::shared_ptr<Stream> stream) const;
};

/// When a handler is called and when it answers.
enum class Flow : uint8_t {
  kUsual,     ///< called with the whole body
  kMayWait,   ///< the same, and the answer may wait for a job
  kInPieces,  ///< called with the head; the body goes where Call::receive() says
};

/// An API with paths, fields and answers of its own: HTTP v1, and those of other servers, for clients that
/// were written for these. All are spoken on the same port by the same conversations, with the same
/// permissions, limits and logs. Only the words differ, refusals included.
struct Dialect {
  struct Route {
    std::string_view method;
    std::string_view path;  ///< "/v1/topics/{topic}/jobs": a part in braces may be anything
    /// An error that it returns is sent as a refusal.
    Status (*handle)(const Call& call);
    Scopes scopes;  ///< one of these is needed; none: it is open to all
    api::Reach reach = api::Reach::kNone;
    /// How large the answer may become. Nothing: one result for each thing that the request names.
    std::optional<api::AnswerKind> answer = std::nullopt;
    Flow flow = Flow::kUsual;
  };

  std::string_view root;  ///< "/job": its paths are this one and those below it; "": all paths
  std::span<const Route> routes;
  /// A refusal in the words of the dialect. `status` is 0 when a handler refused; otherwise it is the HTTP
  /// status.
  Response (*refusal)(const Error& error, int status);
  /// Its answers are the same for everyone and change nothing, so pages of other sites may link to them.
  bool is_public = false;

  /// Whether a request's target is one of its paths, or would be if it had more of them.
  bool owns(std::string_view target) const;

  struct Match {
    const Route* route = nullptr;         ///< null: none for this path and method
    std::vector<std::string_view> names;  ///< the parts of the path that the route leaves open
    std::string allowed;                  ///< without a route: the methods that the path has
  };
  /// The names are views of `target`. A path that a route has without braces is of this route and those of
  /// the same path alone, as in OpenAPI: "/v1/schedules/preview" is no schedule. In the table it comes first.
  Match find(std::string_view method, const Target& target) const;
};

}  // namespace delayq::http
