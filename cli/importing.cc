#include "cli/importing.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "cli/human.h"

namespace delayq::cli {

Result<Ask> ask_directory(const Surroundings& world, const std::string& directory) {
  if (!world.open_directory)
    return Error{ErrorCode::kUnavailable, {}, "this program cannot open a data directory"};
  Result<std::function<Result<resp::Value>(const Words&)>> opened = world.open_directory(directory);
  if (!opened) return opened.error();
  return Ask([ask = std::move(*opened)](const Words& command) -> Result<resp::Value> {
    Result<resp::Value> reply = ask(command);
    if (reply && reply->is_error()) return error_of_reply(reply->text);
    return reply;
  });
}

Result<Ask> ask_where(const Session& session, const std::optional<std::string>& data) {
  if (data) return ask_directory(session.world, *data);
  return Ask([&session](const Words& command) { return session.ask(command); });
}

Result<std::vector<resp::Value>> import_lines(const Ask& ask, std::string_view on_conflict, Words lines) {
  Words command{"IMPORT"};
  if (on_conflict == "keep") command.emplace_back("KEEP");
  if (on_conflict == "replace") command.emplace_back("REPLACE");
  const size_t count = lines.size();
  std::move(lines.begin(), lines.end(), std::back_inserter(command));
  Result<resp::Value> reply = ask(command);
  if (!reply) return reply.error();
  if (reply->items.size() != count) return unexpected_reply();
  return std::move(reply->items);
}

std::optional<Error> ImportCounts::add(const resp::Value& answer) {
  ++lines_;
  const auto* const outcome = std::find(kOutcomes.begin(), kOutcomes.end(), answer.text);
  if (outcome != kOutcomes.end() && !answer.is_error()) {
    ++counts_[static_cast<size_t>(outcome - kOutcomes.begin())];
    return std::nullopt;
  }
  Error error = error_of_reply(answer.text);
  if (failed_++ == 0) first_error_ = error.code;
  return error;
}

uint64_t ImportCounts::of(std::string_view outcome) const {
  const auto* const found = std::find(kOutcomes.begin(), kOutcomes.end(), outcome);
  return found == kOutcomes.end() ? 0 : counts_[static_cast<size_t>(found - kOutcomes.begin())];
}

std::string ImportCounts::text() const {
  std::string text;
  for (size_t i = 0; i < kOutcomes.size(); ++i)
    text += fmt::format("{} {}, ", grouped(static_cast<int64_t>(counts_[i])), kOutcomes[i]);
  return text + fmt::format("{} failed", grouped(static_cast<int64_t>(failed_)));
}

std::string ImportCounts::members() const {
  std::string text;
  for (size_t i = 0; i < kOutcomes.size(); ++i) text += fmt::format("\"{}\":{},", kOutcomes[i], counts_[i]);
  return text + fmt::format("\"failed\":{}", failed_);
}

}  // namespace delayq::cli
