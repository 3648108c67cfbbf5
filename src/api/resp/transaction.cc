// MULTI, EXEC, DISCARD.

#include <fmt/format.h>

#include "api/resp/conversation.h"

namespace delayq::resp {

namespace {

Error too_large(std::string detail) { return {ErrorCode::kTooLarge, {}, std::move(detail), {}}; }

}  // namespace

Status Transaction::add(std::span<const std::string_view> words) {
  if (commands_.size() == kMostCommands)
    return too_large(fmt::format("MULTI: at most {} commands may stand before EXEC", kMostCommands));
  size_t bytes = text_.size() + (words_.size() + words.size()) * sizeof(Word);
  for (const std::string_view word : words) bytes += word.size();
  if (bytes > most_bytes_)
    return too_large(fmt::format("MULTI: the commands before EXEC may have at most {} bytes", most_bytes_));
  commands_.push_back({words_.size(), words.size()});
  for (const std::string_view word : words) {
    words_.push_back({text_.size(), word.size()});
    text_ += word;
  }
  return {};
}

void Transaction::abort() {
  *this = Transaction(most_bytes_);
  is_aborted_ = true;
}

std::span<const std::string_view> Transaction::take() {
  const Command& command = commands_[next_++];
  taken_.clear();
  for (size_t i = 0; i < command.words; ++i) {
    const Word& word = words_[command.first_word + i];
    taken_.push_back(std::string_view(text_).substr(word.begin, word.size));
  }
  return taken_;
}

// ---- the conversation's part

Status Conversation::begin_transaction() {
  transaction_.emplace(limits_.command_bytes);
  reply([](Writer& writer) { writer.simple("OK"); });
  return {};
}

Status Conversation::discard_transaction() {
  if (!transaction_) return invalid("DISCARD without MULTI");
  transaction_.reset();
  reply([](Writer& writer) { writer.simple("OK"); });
  return {};
}

bool Conversation::is_kept_for_exec(const CommandSpec* spec) const {
  if (!transaction_ || transaction_->is_begun()) return false;
  return spec == nullptr || (spec->verb != Verb::kExec && spec->verb != Verb::kDiscard &&
                             spec->verb != Verb::kReset && spec->verb != Verb::kQuit);
}

Status Conversation::keep_for_exec(const CommandSpec& spec, std::span<const std::string_view> words) {
  // These change how later commands are read, or the caller of them.
  if (spec.verb == Verb::kMulti || spec.verb == Verb::kAuth || spec.verb == Verb::kHello)
    return invalid(fmt::format("{} is not allowed between MULTI and EXEC", spec.name));
  if (Status status = transaction_->add(words); !status.ok()) return status;
  reply([](Writer& writer) { writer.simple("QUEUED"); });
  return {};
}

bool Conversation::run_transaction(const CommandSpec& exec, std::span<const std::string_view> words) {
  Transaction& transaction = *transaction_;
  if (!transaction.is_begun()) {
    Status status = admit(exec, Arguments(words.subspan(1)));
    note_asked(&exec, words);
    if (!status.ok() || transaction.is_aborted()) {
      transaction_.reset();
      if (!status.ok()) {
        tell_if_turned_away(about_command(exec, words), status.error());
        refuse(status.error());
      } else {
        reply([](Writer& writer) {
          writer.error("EXECABORT",
                       "Transaction discarded because of previous errors: nothing of it was done");
        });
      }
      return true;
    }
    transaction.begin();
    // The replies of the commands follow, each as outside of a transaction.
    special().nested.push_back({replies_.next_place()});
    reply([&](Writer& writer) { writer.array(transaction.size()); });
  }
  while (!transaction.is_done()) {
    if (!wants_input()) return false;
    execute(transaction.take());
    ++requests_;
    // These may need several steps.
    if (batch_ == BatchKind::kNack || batch_ == BatchKind::kPop || batch_ == BatchKind::kSetSchedule) flush();
  }
  flush();
  special_->nested.back().end = replies_.next_place();
  transaction_.reset();
  return true;
}

bool Conversation::is_amid_exec() {
  if (special_ == nullptr) return false;
  const std::deque<Nested>& nested = special().nested;
  return !nested.empty() && nested.front().begin < next_sent();
}

}  // namespace delayq::resp
