#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "api/access.h"
#include "api/http/fields.h"
#include "api/http/response.h"
#include "api/http/target.h"
#include "api/replies.h"
#include "queue/queue.h"

namespace delayq::http {

class Conversation;
struct Dialect;

/// A request of a dialect that was taken: whom it came from, and where its answer goes. Copied into what
/// waits for the queue; exactly one of send(), refuse() and pop() is called, once.
class Exchange {
 public:
  Queue& queue() const;
  Moment now() const { return now_; }
  /// Whether who asked may do something that needs one of `scopes` to this topic.
  Status check(Scopes scopes, std::string_view topic) const;

  /// Looks for a live job by its id alone, in the topics of who asked: nobody learns which ids there are in
  /// the topics of others.
  void find(std::string_view id, Reply<std::optional<FoundJob>> reply) const;
  /// The same, also among the jobs that are kept as done or dead.
  void find_kept_too(std::string_view id, Reply<std::optional<FoundJob>> reply) const;

  void send(Response response) const;
  /// Says no with an answer that is written already; the error is for logs, counters and headers.
  void refuse(const Error& error, Response response) const;
  /// Says no as the dialect does.
  void refuse(const Error& error) const;
  /// Asks for jobs. `reply` ends with send() or refuse(). A pop that waits holds up what comes behind it on
  /// its connection, and ends with it.
  void pop(const PopRequest& request, Reply<PopAnswer> reply) const;

 private:
  friend struct DialectCall;
  Exchange(std::shared_ptr<Conversation> conversation, const Dialect& dialect);

  std::shared_ptr<Conversation> conversation_;
  const Dialect* dialect_;
  api::Replies::Place place_;
  api::Caller caller_;
  Moment now_;
  std::shared_ptr<Steps> steps_;  ///< the request may need several verbs: what comes behind it waits
};

/// What a request of a dialect says; only until its handler returns.
struct DialectCall {
  Conversation& conversation;
  const Dialect& dialect;
  std::string_view method;
  std::string_view body;
  const Target& target;

  /// The members of the body of a POST, or else the values of the query.
  Result<Fields> fields() const;
  /// As in Exchange.
  Status check(Scopes scopes, std::string_view topic) const;
  /// Whether a new id may be refused because it is in another topic, which tells of all topics.
  bool may_ask_for_unique() const;
  /// Whatever comes of it, it comes through the Exchange. To be called at most once, and the handler answers
  /// OK then.
  Exchange accept() const;
};

/// An API with paths, fields and answers of its own, for clients that were written for another server. It is
/// spoken on the same port and by the same conversations, and the same holds for it: who may do what, what is
/// too much, what is logged. Only what is said is said in its way, refusals included.
struct Dialect {
  struct Route {
    std::string_view method;
    std::string_view path;  ///< all of it: no part is left open
    /// An error that it answers is told as a refusal.
    Status (*handle)(const DialectCall& call);
    Scopes
        scopes;  ///< one of these is needed; none: it is for everybody. Topics are for the handler to check.
    bool may_wait = false;
  };

  std::string_view root;  ///< "/job": its paths are this one and those below it
  std::span<const Route> routes;
  /// How it says no. `status` is not 0 when the request did not get as far as a handler: it is what HTTP has
  /// for that.
  Response (*refusal)(const Error& error, int status);

  /// Whether a request's target is one of its paths, or would be if it had more of them.
  bool owns(std::string_view target) const;
};

}  // namespace delayq::http
