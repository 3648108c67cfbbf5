#include "api/http/idempotency.h"

#include <utility>

namespace delayq::http {

namespace {

/// What a note costs besides its texts.
constexpr size_t kNoteBytes = 256;

}  // namespace

void IdempotencyBook::forget_old(Moment now) {
  for (size_t left = ages_.size(); left > 0; --left) {
    Age oldest = std::move(ages_.front());
    ages_.pop_front();
    const auto found = notes_.find(oldest.key);
    if (found == notes_.end() || found->second.number != oldest.number) continue;  // it was abandoned
    if (now - oldest.begun < limits_.keep && bytes_ <= limits_.bytes) {
      ages_.push_front(std::move(oldest));
      return;
    }
    if (found->second.is_running) {
      ages_.push_back(std::move(oldest));  // its turn comes again
      continue;
    }
    bytes_ -= found->second.bytes;
    notes_.erase(found);
  }
}

IdempotencyBook::Found IdempotencyBook::begin(Moment now, const std::string& key, uint64_t fingerprint) {
  forget_old(now);
  const auto found = notes_.find(key);
  if (found != notes_.end()) {
    const Note& note = found->second;
    if (note.fingerprint != fingerprint) return {Outcome::kAnother};
    if (note.is_running) return {Outcome::kRunning};
    return {Outcome::kKnown, note.answer.get()};
  }
  Note note;
  note.fingerprint = fingerprint;
  note.number = ++last_number_;
  note.bytes = kNoteBytes + 2 * key.size();
  bytes_ += note.bytes;
  ages_.push_back({now, note.number, key});
  notes_.emplace(key, std::move(note));
  return {Outcome::kNew};
}

void IdempotencyBook::finish(const std::string& key, Response answer) {
  const auto found = notes_.find(key);
  if (found == notes_.end()) return;
  Note& note = found->second;
  const size_t bytes = answer.body.size() + answer.headers.size();
  note.bytes += bytes;
  bytes_ += bytes;
  note.is_running = false;
  note.answer = std::make_unique<Response>(std::move(answer));
}

void IdempotencyBook::abandon(const std::string& key) {
  const auto found = notes_.find(key);
  if (found == notes_.end()) return;
  bytes_ -= found->second.bytes;
  notes_.erase(found);
}

}  // namespace delayq::http
