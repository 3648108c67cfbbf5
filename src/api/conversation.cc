#include "api/conversation.h"

#include <utility>

namespace delayq::api {

namespace {

/// A client that does not take its replies is not read either.
constexpr size_t kMostOutput = 1 << 20;
/// What the pops of one connection may bring before any of them is answered: a dozen for many jobs, of which
/// a pipeline may have thousands.
constexpr uint64_t kMostPoppedBytes = uint64_t{128} << 20;

}  // namespace

Conversation::Conversation(Queue& queue, const std::function<Moment()>& clock, Front& front,
                           net::Connection& connection, size_t most_unanswered)
    : queue_(queue),
      clock_(clock),
      front_(front),
      connection_(&connection),
      most_unanswered_(most_unanswered),
      sequence_(std::make_shared<Sequence>([this] {
        if (connection_ != nullptr) connection_->on_resume();
      })) {}

bool Conversation::wants_input() const {
  return !is_over_ && !holds_up_ && !has_enough_to_do() && replies_.output().size() < kMostOutput;
}

bool Conversation::is_catching_up() const { return !is_over_ && !holds_up_ && has_enough_to_do(); }

bool Conversation::has_enough_to_do() const {
  return sequence_->is_busy() || replies_.waiting() >= most_unanswered_ ||
         most_popped_bytes_ >= kMostPoppedBytes;
}

bool Conversation::end_input() {
  is_over_ = true;
  return !holds_up_ && replies_.waiting() > 0;
}

void Conversation::hang_up() {
  connection_ = nullptr;
  is_over_ = true;
  const Moment now = clock_();
  for (const auto& [place, pop] : std::exchange(pops_, {})) queue_.drop_waiter(now, pop.waiter);
}

Served Conversation::about(std::string_view protocol, std::string_view verb) const {
  Served served;
  served.at = clock_();
  served.protocol = protocol;
  served.peer = connection_ == nullptr ? std::string_view() : connection_->peer();
  served.token = caller_.name();
  served.verb = verb;
  return served;
}

void Conversation::tell_if_turned_away(Served served, const Error& error) const {
  const bool is_turned_away = error.code == ErrorCode::kUnauthorized || error.code == ErrorCode::kForbidden ||
                              error.code == ErrorCode::kOverloaded;
  if (!is_turned_away || front_.turned_away == nullptr) return;
  served.code = traits_of(error.code).name;
  front_.turned_away(served);
}

Status Conversation::ask_for_jobs(Moment now, const PopRequest& request, Place place,
                                  Reply<PopAnswer> answer) {
  Pop pop;
  const bool waits = request.wait > Millis::zero();
  if (waits) {
    Result<Access::WaiterPlace> waiter_place = front_.access.take_waiter_place(caller_);
    if (!waiter_place.ok()) return waiter_place.error();
    pop.place = std::move(*waiter_place);
  }
  pop.waiter = queue_.pop(
      now, request,
      [this, self = shared_from_this(), place, answer = std::move(answer)](Result<PopAnswer> popped) mutable {
        forget_pop(place);
        answer(std::move(popped));
        end_pop(place);
      });
  if (pop.waiter == 0) return {};  // refused; it will hear of that
  pop.most_bytes = queue_.most_bytes(request);
  most_popped_bytes_ += pop.most_bytes;
  pops_.emplace(place, std::move(pop));
  if (waits) holds_up_ = place;
  return {};
}

void Conversation::forget_pop(Place place) {
  const auto found = pops_.find(place);
  if (found == pops_.end()) return;
  most_popped_bytes_ -= found->second.most_bytes;
  pops_.erase(found);
}

void Conversation::end_pop(Place place) {
  if (holds_up_ != place) return;
  holds_up_.reset();
  if (connection_ != nullptr) connection_->on_resume();
}

Error refusal_of(RescheduleOutcome outcome) {
  switch (outcome) {
    case RescheduleOutcome::kMoved:
      break;
    case RescheduleOutcome::kReserved:
      return {ErrorCode::kConflict, {}, "the job is being worked on", {}};
    case RescheduleOutcome::kDone:
      return {ErrorCode::kConflict, {}, "the job is done", {}};
    case RescheduleOutcome::kUnknown:
      return {ErrorCode::kNotFound, {}, "there is no such job", {}};
  }
  return {ErrorCode::kInternal, {}, "a job that was moved", {}};
}

}  // namespace delayq::api
