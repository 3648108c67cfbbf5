#include "api/http/dialect.h"

#include <utility>

#include "api/http/conversation.h"

namespace delayq::http {

Exchange::Exchange(std::shared_ptr<Conversation> conversation, const Dialect& dialect)
    : conversation_(std::move(conversation)),
      dialect_(&dialect),
      place_(conversation_->reserve()),
      caller_(conversation_->caller_),
      now_(conversation_->now_),
      steps_(std::make_shared<Steps>(conversation_->queue_.begin_steps())) {}

Queue& Exchange::queue() const { return conversation_->queue_; }

Status Exchange::check(Scopes scopes, std::string_view topic) const {
  return conversation_->front_.access.check(caller_, scopes, topic);
}

void Exchange::find(std::string_view id, Reply<std::optional<FoundJob>> reply) const {
  queue().find(now_, id, conversation_->front_.access.topics_of(caller_), std::move(reply));
}

void Exchange::find_kept_too(std::string_view id, Reply<std::optional<FoundJob>> reply) const {
  queue().find_kept_too(now_, id, conversation_->front_.access.topics_of(caller_), std::move(reply));
}

void Exchange::send(Response response) const { conversation_->send(place_, std::move(response)); }

void Exchange::refuse(const Error& error, Response response) const {
  conversation_->send_refusal(place_, error, std::move(response));
}

void Exchange::refuse(const Error& error) const { refuse(error, dialect_->refusal(error, 0)); }

void Exchange::pop(const PopRequest& request, Reply<PopAnswer> reply) const {
  const Status status = conversation_->ask_for_jobs(now_, request, place_, std::move(reply));
  if (!status.ok()) refuse(status.error());
}

Result<Fields> DialectCall::fields() const {
  if (method == "POST") return Fields::of_json(body);
  return Fields(target.query);
}

Status DialectCall::check(Scopes scopes, std::string_view topic) const {
  return conversation.front_.access.check(conversation.caller_, scopes, topic);
}

bool DialectCall::may_ask_for_unique() const {
  return conversation.front_.access.check_unique(conversation.caller_).ok();
}

Exchange DialectCall::accept() const { return {conversation.self(), dialect}; }

bool Dialect::owns(std::string_view target) const {
  if (!target.starts_with(root)) return false;
  return target.size() == root.size() || target[root.size()] == '/' || target[root.size()] == '?';
}

}  // namespace delayq::http
