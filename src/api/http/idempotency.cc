#include "api/http/idempotency.h"

#include <utility>

#include <fmt/format.h>
#include <openssl/evp.h>

namespace delayq::http {

namespace {

/// The memory of a note without its texts.
constexpr size_t kNoteBytes = 320;
/// How many of the oldest notes are checked for each new one: more than one, so that the book gets smaller.
constexpr int kMostLooks = 64;

}  // namespace

struct RequestDigest::State {
  State() { EVP_DigestInit_ex(context, EVP_sha256(), nullptr); }
  ~State() { EVP_MD_CTX_free(context); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  EVP_MD_CTX* context = EVP_MD_CTX_new();
};

RequestDigest::RequestDigest(std::string_view target, std::string_view content_type)
    : state_(std::make_unique<State>()) {
  add(fmt::format("{} {} {}{}", target.size(), content_type.size(), target, content_type));
}
RequestDigest::~RequestDigest() = default;
RequestDigest::RequestDigest(RequestDigest&&) noexcept = default;
RequestDigest& RequestDigest::operator=(RequestDigest&&) noexcept = default;

void RequestDigest::add(std::string_view piece) {
  EVP_DigestUpdate(state_->context, piece.data(), piece.size());
}

Sha256 RequestDigest::finish() {
  Sha256 digest{};
  EVP_DigestFinal_ex(state_->context, digest.data(), nullptr);
  return digest;
}

struct IdempotencyBook::Note {
  std::string name;
  std::optional<Sha256> digest;
  uint64_t number = 0;
  size_t bytes = 0;
  std::unique_ptr<Response> answer;  ///< null while it is running
};

namespace {

/// Whether only the book refers to it, so that it will never be answered.
bool is_orphan(const IdempotencyBook::Claim& note) { return note.use_count() == 1; }

}  // namespace

std::string IdempotencyBook::name_of(std::string_view caller, std::string_view key) {
  return fmt::format("{} {}{}", caller.size(), caller, key);
}

void IdempotencyBook::forget(const std::string& name) {
  const auto found = notes_.find(name);
  if (found == notes_.end()) return;
  bytes_ -= found->second->bytes;
  notes_.erase(found);
}

void IdempotencyBook::forget_old(Moment now) {
  for (int looks = 0; looks < kMostLooks && !ages_.empty(); ++looks) {
    const Age& oldest = ages_.front();
    const auto found = notes_.find(oldest.name);
    const bool is_gone = found == notes_.end() || found->second->number != oldest.number;
    if (!is_gone && now - oldest.begun < limits_.keep && bytes_ <= limits_.bytes) return;
    if (!is_gone && found->second->answer == nullptr && !is_orphan(found->second)) {
      // It is running: it is checked again after the same time.
      ages_.push_back({now, oldest.number, oldest.name});
    } else if (!is_gone) {
      forget(oldest.name);
    }
    ages_.pop_front();
  }
}

IdempotencyBook::Found IdempotencyBook::begin(Moment now, const std::string& name,
                                              const std::optional<Sha256>& digest) {
  forget_old(now);
  if (const auto found = notes_.find(name); found != notes_.end()) {
    const Claim& note = found->second;
    const bool is_running = note->answer == nullptr;
    if (!is_running || !is_orphan(note)) {
      if (digest && note->digest && *note->digest != *digest) return {Outcome::kAnother};
      if (is_running) return {Outcome::kRunning};
      return {Outcome::kKnown, note->answer.get()};
    }
    forget(name);
  }
  auto note = std::make_shared<Note>();
  note->name = name;
  note->digest = digest;
  note->number = ++last_number_;
  note->bytes = kNoteBytes + 3 * name.size();
  bytes_ += note->bytes;
  ages_.push_back({now, note->number, note->name});
  notes_.emplace(note->name, note);
  return {Outcome::kNew, nullptr, std::move(note)};
}

void IdempotencyBook::set_digest(const Claim& claim, const Sha256& digest) { claim->digest = digest; }

void IdempotencyBook::finish(const Claim& claim, Response answer) {
  const size_t bytes = answer.body.size() + answer.headers.size();
  claim->bytes += bytes;
  bytes_ += bytes;
  claim->answer = std::make_unique<Response>(std::move(answer));
}

void IdempotencyBook::abandon(const Claim& claim) { forget(claim->name); }

}  // namespace delayq::http
