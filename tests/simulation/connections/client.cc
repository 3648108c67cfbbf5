#include "tests/simulation/connections/client.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace delayq::connections {

namespace {

/// The least time after which a server may lose patience with somebody.
constexpr Millis kPatience{1'000};
constexpr std::string_view kTooLateHttp = "HTTP/1.1 408";
constexpr std::string_view kTooLateResp = "did not come whole in time";

std::string shortened(const std::string& text) { return text.substr(0, 120); }

}  // namespace

Client::Client(Random& random, Wire& wire, std::unique_ptr<Talker> talker, Manner manner)
    : random_(random), wire_(wire), talker_(std::move(talker)), manner_(manner) {
  if (manner_.is_tls) tls_ = std::make_unique<TlsClientEnd>(manner_.is_tls_1_2);
  if (manner_.is_silent) excuse();
}

void Client::act() {
  if (is_gone_) return;
  const uint64_t choice = random_.below(40);
  if (choice == 0) {
    is_gone_ = true;
    return wire_.reset();
  }
  if (choice == 1 && carried_.empty() && outbox_.empty() && !has_ended_) {
    has_ended_ = true;
    // There is no telling one that waits for a job from one that is gone.
    if (std::any_of(asked_.begin(), asked_.end(), [](const Asked& asked) { return asked.may_wait; }))
      excuse();
    return wire_.end_by_client();
  }
  if (choice == 2) reads_ = !reads_;
  if (choice < 12 && !has_ended_) ask_more();
  if (choice < 30 && !has_ended_) send_some(random_.chance(1, 4));
  if (reads_) read_some(random_.chance(1, 4));
}

void Client::ask_more() {
  if (manner_.is_silent || is_finished_ || talker_->is_over() || !is_understood_ || asked_.size() > 400)
    return;
  if (manner_.is_confused && random_.chance(1, 10)) {
    is_understood_ = false;
    const size_t size = random_.between(1, 3'000);
    for (size_t i = 0; i < size; ++i) outbox_ += static_cast<char>(random_.below(256));
    return excuse();
  }
  const uint64_t count = manner_.is_greedy ? random_.between(1, 150) : random_.between(1, 6);
  for (uint64_t i = 0; i < count && !talker_->is_over(); ++i) {
    const size_t before = asked_.size();
    talker_->ask(outbox_, asked_);
    requests_ += asked_.size() - before;
  }
}

void Client::send_some(bool all) {
  if (manner_.is_silent) return;
  const size_t most = all ? outbox_.size() : random_.between(0, outbox_.size());
  const std::string_view plain = std::string_view(outbox_).substr(0, most);
  size_t taken = plain.size();
  if (tls_ != nullptr) {
    taken = carried_.empty() ? tls_->say(plain) : 0;
    carried_ += tls_->leave();
  } else {
    carried_ += plain;
  }
  outbox_.erase(0, taken);
  carried_.erase(0, wire_.put(carried_));
}

void Client::read_some(bool all) {
  const std::string came = wire_.take(all ? std::string::npos : random_.between(1, 5'000));
  if (tls_ == nullptr) {
    inbox_ += came;
  } else if (!came.empty() && !tls_->arrive(came, inbox_)) {
    if (!is_excused_) throw Broken("TLS that cannot be understood");
  }
  take_answers();
}

void Client::take_answers() {
  if (!is_understood_) return inbox_.clear();
  for (;;) {
    const std::optional<Answer> answer = talker_->take_answer(inbox_);
    if (!answer) return;
    ++answers_;
    if (answer->text.starts_with(kTooLateHttp) || answer->text.find(kTooLateResp) != std::string::npos) {
      if (!is_excused_) throw Broken("a client that was quick was timed out");
      asked_.clear();
      continue;
    }
    if (asked_.empty()) throw Broken("an answer to nothing: " + shortened(answer->text));
    const Asked asked = std::move(asked_.front());
    asked_.pop_front();
    if (answer->is_refusal != asked.is_refused || answer->text.find(asked.must_have) == std::string::npos) {
      throw Broken(fmt::format("{}: expected {} with '{}', and got '{}'", asked.what,
                               asked.is_refused ? "a refusal" : "an answer", asked.must_have,
                               shortened(answer->text)));
    }
    if (!answer->is_last) continue;
    // A request that is refused while its body is still to come ends its connection.
    if (!asked.is_refused && !asked_.empty()) throw Broken("closed behind " + asked.what);
    asked_.clear();
    is_finished_ = true;
  }
}

void Client::settle() {
  if (is_gone_) return;
  reads_ = true;
  read_some(true);
  if (!has_ended_) send_some(true);
}

void Client::time_passes(Millis time) {
  // Who reads, has sent all, was answered before and has said who it is, may be quiet for as long as it
  // likes.
  const bool may_be_unknown = talker_->is_stranger() || (talker_->needs_token() && !asked_.empty());
  const bool keeps_waiting = !reads_ || wire_.has_bytes_for_client() || !outbox_.empty() ||
                             !carried_.empty() || answers_ == 0 || may_be_unknown;
  quiet_ = keeps_waiting ? quiet_ + time : Millis{};
  if (quiet_ >= kPatience) excuse();
}

std::string Client::complaint() const {
  if (is_gone_ || is_excused_ || asked_.empty()) return {};
  return fmt::format("{} requests of a client that behaved well have no answer; the first is {}{}",
                     asked_.size(), asked_.front().what,
                     wire_.is_over_for_client() ? "; its connection was closed" : "");
}

}  // namespace delayq::connections
