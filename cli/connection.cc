#include "cli/connection.h"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "core/duration.h"
#include "resp/writer.h"

namespace delayq::cli {

namespace {

Error unavailable(std::string detail) { return {ErrorCode::kUnavailable, {}, std::move(detail)}; }

}  // namespace

Result<Connection> Connection::open(const Address& address, Millis patience) {
  return open(Server{.address = address, .token = {}, .tls = {}}, patience);
}

Result<Connection> Connection::open(const Server& server, Millis patience) {
  Result<Stream> stream = Stream::open(server, Clock::now() + patience);
  if (!stream) return stream.error();
  Connection connection(std::move(*stream));
  if (!server.token.empty()) {
    if (Status status = connection.introduce(server.token, patience); !status) return status.error();
  }
  return connection;
}

Status Connection::introduce(const std::string& token, Millis patience) {
  const std::array<std::string_view, 2> command{"AUTH", token};
  const Result<resp::Value> reply = ask(command, patience);
  if (!reply) return reply.error();
  if (!reply->is_error()) return {};
  return Error{ErrorCode::kUnauthorized,
               {},
               fmt::format("{} refuses the token (--token, $DELAYQ_TOKEN): {}", stream_.name(), reply->text)};
}

Result<resp::Value> Connection::ask(std::span<const std::string_view> command, Millis patience) {
  const Clock::time_point deadline = Clock::now() + patience;
  std::string bytes;
  resp::append_command(bytes, command);
  if (Status status = stream_.send(bytes, deadline); !status) return status.error();
  return read_reply(deadline, patience);
}

Result<std::vector<resp::Value>> Connection::ask_all(std::span<const std::vector<std::string>> commands,
                                                     Millis patience) {
  const Clock::time_point deadline = Clock::now() + patience;
  std::string bytes;
  for (const std::vector<std::string>& command : commands) {
    const std::vector<std::string_view> words(command.begin(), command.end());
    resp::append_command(bytes, words);
  }
  if (Status status = stream_.send(bytes, deadline); !status) return status.error();
  std::vector<resp::Value> replies;
  replies.reserve(commands.size());
  while (replies.size() < commands.size()) {
    Result<resp::Value> reply = read_reply(deadline, patience);
    if (!reply) return reply.error();
    replies.push_back(std::move(*reply));
  }
  return replies;
}

Result<resp::Value> Connection::read_reply(Clock::time_point deadline, Millis patience) {
  for (;;) {
    const Result<std::optional<size_t>> size = resp::reply_size(input_);
    if (!size)
      return unavailable(fmt::format("{} does not speak RESP: {}", stream_.name(), size.error().detail));
    if (*size) break;
    const Result<bool> came = stream_.receive(input_, deadline);
    if (!came) return came.error();
    if (!*came)
      return unavailable(
          fmt::format("no answer from {} within {}", stream_.name(), format_duration(patience)));
  }
  std::string_view rest = input_;
  Result<std::optional<resp::Value>> value = resp::take_reply(rest);
  if (!value) return value.error();
  input_.erase(0, input_.size() - rest.size());
  return std::move(**value);
}

}  // namespace delayq::cli
