#include "api/conversation.h"

#include <algorithm>
#include <utility>

namespace delayq::api {

namespace {

/// A client with this much unread output is not read.
constexpr size_t kMostOutput = 1 << 20;
/// The size of a job without its body: names, times, a callback, the last error.
constexpr size_t kJobFields = 8 * 1024;

}  // namespace

void Front::set_tokens(std::vector<Token> tokens) {
  access.replace(std::move(tokens));
  const std::vector<Conversation*> all(lingering.begin(), lingering.end());
  for (Conversation* each : all) each->check_again();
}

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
  return !is_over_ && !holds_up_ && !sequence_->is_busy() && replies_.waiting() < most_unanswered_ &&
         replies_.output().size() < kMostOutput && connection_->may_hold(held());
}

bool Conversation::is_known() const { return front_.access.is_open() ? requests() > 0 : caller_.is_known(); }

size_t Conversation::most_bytes(AnswerKind kind) const {
  constexpr size_t kNames = Limits::kPageJobs * kJobFields / 2;
  const auto bodies = [this](uint32_t count) {
    PopRequest jobs;
    jobs.count = count;
    return queue_.most_bytes(jobs);
  };
  switch (kind) {
    case AnswerKind::kShort:
      break;
    case AnswerKind::kNames:
      return kNames;
    case AnswerKind::kJob:
      return kJobFields + bytes_per_byte_ * bodies(1);
    case AnswerKind::kJobs:
      return kNames + bytes_per_byte_ * bodies(Limits::kPopJobs);
    case AnswerKind::kLines:
      return kNames + kBytesPerByteInJson * bodies(Limits::kPopJobs);
  }
  return kJobFields;
}

bool Conversation::end_input() {
  is_over_ = true;
  return !holds_up_ && replies_.waiting() > 0;
}

void Conversation::hang_up() {
  connection_ = nullptr;
  is_over_ = true;
  front_.lingering.erase(this);
  const Moment now = clock_();
  for (const auto& [place, pop] : std::exchange(pops_, {})) {
    queue_.drop_waiter(now, pop.waiter);
    on_pop_dropped(place);
  }
}

void Conversation::check_again() {
  if (!holds_up_) return;
  const ReplyPlace place = *holds_up_;
  const Pop& pop = pops_.at(place);
  Status status;
  for (const std::string& topic : pop.topics) {
    if (status.ok()) status = front_.access.check(caller_, only(Scope::kConsume), topic);
  }
  if (status.ok() || !queue_.drop_waiter(clock_(), pop.waiter)) return;
  const std::shared_ptr<Reply<PopAnswer>> answer = pop.answer;
  pops_.erase(place);
  (*answer)(status.error());
  end_pop(place);
}

std::optional<WaitingPop> Conversation::waiting_pop() const {
  if (!holds_up_ || connection_ == nullptr) return std::nullopt;
  const Pop& pop = pops_.at(*holds_up_);
  return WaitingPop{connection_->peer(), protocol(), caller_.name(), pop.topics, pop.since, pop.until};
}

WaitingPops waiting_pops(const Front& front, size_t most) {
  WaitingPops pops;
  for (const Conversation* const each : front.lingering) {
    if (const auto pop = each->waiting_pop()) pops.first.push_back(*pop);
  }
  pops.total = pops.first.size();
  const size_t shown = std::min(most, pops.total);
  std::partial_sort(pops.first.begin(), pops.first.begin() + static_cast<ptrdiff_t>(shown), pops.first.end(),
                    [](const WaitingPop& a, const WaitingPop& b) {
                      return std::pair(a.since, a.client) < std::pair(b.since, b.client);
                    });
  pops.first.resize(shown);
  return pops;
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

Status Conversation::ask_for_jobs(Moment now, const PopRequest& request, ReplyPlace place,
                                  Reply<PopAnswer> answer) {
  Pop pop;
  const bool waits = request.wait > Millis::zero();
  if (waits) {
    Result<Access::WaiterPlace> waiter_place = front_.access.take_waiter_place(caller_);
    if (!waiter_place.ok()) return waiter_place.error();
    pop.place = std::move(*waiter_place);
    pop.since = now;
    pop.until = saturating_add(now, request.wait);
    pop.topics.assign(request.topics.begin(), request.topics.end());
    pop.answer = std::make_shared<Reply<PopAnswer>>(std::move(answer));
    answer = [shared = pop.answer](Result<PopAnswer> popped) { (*shared)(std::move(popped)); };
  }
  pop.waiter = queue_.pop(
      now, request,
      [this, self = shared_from_this(), place, answer = std::move(answer)](Result<PopAnswer> popped) mutable {
        pops_.erase(place);
        answer(std::move(popped));
        end_pop(place);
      });
  if (pop.waiter == 0) return {};  // refused: its reply follows
  // A pop may wait for long, and nothing else runs on its connection meanwhile: its bytes are counted when it
  // is answered.
  if (!waits) replies_.promise(place, bytes_per_byte_ * queue_.most_bytes(request));
  pops_.emplace(place, std::move(pop));
  if (waits) {
    holds_up_ = place;
    front_.lingering.insert(this);
  }
  return {};
}

void Conversation::end_pop(ReplyPlace place) {
  if (holds_up_ != place) return;
  holds_up_.reset();
  front_.lingering.erase(this);
  if (connection_ != nullptr) connection_->on_resume();
}

}  // namespace delayq::api
