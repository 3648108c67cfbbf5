#pragma once

// How a call passes through a CheckedEngine. For its own sources only.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "tests/simulation/checked_engine.h"
#include "tests/simulation/compare.h"

namespace delayq::simulation {

inline constexpr int kMostPumps = 100'000;
inline constexpr int kPatience = 1'000;

/// One sector that cannot be read is no failure, unless the machine is off and nothing can.
inline bool is_failure(const Error& error) {
  return error.code == ErrorCode::kUnavailable &&
         (error.op != "journal.read" || error.detail.find("machine is off") != std::string::npos);
}

/// Nothing was done and nothing is wrong: a cursor that has expired.
inline bool is_refusal(const Error& error) { return error.code == ErrorCode::kInvalid; }

template <class T, class Ask>
T CheckedEngine::ask_model(Operation operation, Promise promise, Ask ask) {
  return world_.model.apply<T>(operation, promise, std::move(ask));
}

template <class T>
void CheckedEngine::deliver(Reply<T> reply, Result<T> answer) {
  // Else the engine was polled only to look around, or to wait for one answer.
  if (listener_ != nullptr) return reply(std::move(answer));
  answers_.push_back(
      [give = std::move(reply), what = std::move(answer)]() mutable { give(std::move(what)); });
}

template <class T>
bool CheckedEngine::judge(const Terms<T>& terms, Operation operation, const Result<T>& answer,
                          const T& expected) {
  if (!answer.ok()) {
    if (is_failure(answer.error()) && !world_.is_sound()) {
      if (!failed_) world_.witness.say(fmt::format("  the journal failed: {}", to_string(answer.error())));
      failed_ = true;
    } else if (!careful_ && !failed_ && !is_refusal(answer.error())) {
      fail(terms.verb, "answered " + to_string(answer.error()));
    }
    return failed_ || is_refusal(answer.error());
  }
  const std::string wrong = terms.judge ? terms.judge(*answer, expected) : std::string();
  // What a failed journal still says of its jobs may be ahead of what it could write, or behind the clock.
  // That it has failed may not be known yet: a promise made after this would show that it had not.
  const bool only_looked = terms.promise == Promise::kNothing;
  if (!wrong.empty() && only_looked && !failed_ && !world_.is_sound()) {
    if (!doubt_) doubt_ = {world_.model.begin(), fmt::format("{}: {}", terms.verb, wrong)};
  } else if (!wrong.empty() && !(failed_ && only_looked)) {
    fail(terms.verb, wrong);
  }
  if (!only_looked) {
    if (doubt_ && operation > doubt_->since) world_.witness.fail(doubt_->what);
    world_.model.answered(operation);
  }
  return true;
}

template <class T, class Real, class Expect>
void CheckedEngine::run(Terms<T> terms, Reply<T> reply, Real real, Expect expect) {
  latest_ = std::max(latest_, terms.now);
  if (world_.witness.tracing())
    world_.witness.say(fmt::format("  engine: {} at {}", terms.verb, to_unix_ms(terms.now)));
  if (failed_) return run_failed(std::move(terms), std::move(reply), real);
  const Operation operation = world_.model.begin();
  if (careful_) return run_carefully(std::move(terms), operation, std::move(reply), real, expect);

  auto expected = std::make_unique<T>(expect(operation));
  ++unanswered_;
  real([this, operation, expected = std::move(expected), terms = std::move(terms),
        reply = std::move(reply)](Result<T> answer) mutable {
    --unanswered_;
    judge(terms, operation, answer, *expected);
    deliver(std::move(reply), std::move(answer));
  });
}

template <class T, class Real>
void CheckedEngine::run_failed(Terms<T> terms, Reply<T> reply, Real real) {
  ++unanswered_;
  real(
      [this, verb = terms.verb, promise = terms.promise, reply = std::move(reply)](Result<T> answer) mutable {
        --unanswered_;
        if (answer.ok() && promise != Promise::kNothing)
          fail(verb, "promised something after the journal had failed");
        deliver(std::move(reply), std::move(answer));
      });
}

template <class T, class Real>
std::optional<Result<T>> CheckedEngine::wait_for(std::string_view verb, Real real) {
  auto answer = std::make_shared<std::optional<Result<T>>>();
  real([answer](Result<T> result) { answer->emplace(std::move(result)); });
  for (int pumps = 0; pumps < kMostPumps; ++pumps) {
    world_.real.poll(*this);
    if (*answer || !world_.pump()) return std::move(*answer);
    // What finds no room on the disk waits for some, and looks again when time has passed.
    if (careful_ && pumps % kPatience == kPatience - 1) {
      world_.make_room();
      tick(std::max(latest_, now_) + std::chrono::seconds{2});
    }
  }
  fail(verb, "was never answered");
  return std::nullopt;
}

template <class T, class Real, class Expect>
void CheckedEngine::run_carefully(Terms<T> terms, Operation operation, Reply<T> reply, Real real,
                                  Expect expect) {
  // Before the wait, in which time may pass for both.
  const T expected = expect(operation);
  std::optional<Result<T>> answer = wait_for<T>(terms.verb, real);
  if (!answer) return;  // the machine went off meanwhile: it may have happened or not
  if (!judge(terms, operation, *answer, expected)) recover_from(answer->error(), terms.now);
  deliver(std::move(reply), std::move(*answer));
}

template <class T, class Ask>
void CheckedEngine::run_same(std::string_view verb, Moment now, Promise promise, Reply<T> reply, Ask ask) {
  run<T>(
      {verb, now, promise, [](const T& real, const T& expected) { return difference(real, expected); }},
      std::move(reply), [&](Reply<T> done) { ask(world_.real, std::move(done)); },
      [&](Operation operation) { return ask_model<T>(operation, promise, ask); });
}

}  // namespace delayq::simulation
