#include "bench/rivals/control.h"

#include <array>
#include <charconv>
#include <poll.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include "resp/writer.h"

namespace delayq::bench {

namespace {

Error failed(std::string detail) { return {ErrorCode::kUnavailable, "rivals.ask", std::move(detail), {}}; }

}  // namespace

Result<Control> Control::open(const Address& address, std::chrono::seconds limit) {
  Result<Descriptor> socket = connect_to(address);
  if (!socket.ok()) return socket.error();
  const timeval time{limit.count(), 0};
  if (::setsockopt(socket->get(), SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time) != 0)
    return failed("no time limit");
  return Control(std::move(*socket));
}

Result<resp::Value> Control::ask(std::initializer_list<std::string_view> words) {
  std::string request;
  resp::append_command(request, words);
  if (::send(socket_.get(), request.data(), request.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(request.size()))
    return failed("a question could not be sent");
  std::string answer;
  for (;;) {
    std::array<char, 16 * 1024> buffer;  // not cleared: recv says how much of it is meant
    const ssize_t count = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (count <= 0) return failed("no answer");
    answer.append(buffer.data(), static_cast<size_t>(count));
    std::string_view rest = answer;
    Result<std::optional<resp::Value>> value = resp::take_reply(rest);
    if (!value.ok()) return value.error();
    if (*value) return std::move(**value);
  }
}

Result<uint64_t> Control::info(std::string_view section, std::string_view name) {
  const Result<resp::Value> text = ask({"INFO", section});
  if (!text.ok()) return text.error();
  const std::string field = fmt::format("\n{}:", name);
  const size_t at = text->text.find(field);
  uint64_t value = 0;
  if (at == std::string::npos) return failed(fmt::format("INFO has no {}", name));
  std::from_chars(text->text.data() + at + field.size(), text->text.data() + text->text.size(), value);
  return value;
}

Result<double> seconds_until_answer(const Address& address, std::initializer_list<std::string_view> words,
                                    Deadline deadline) {
  const auto begun = std::chrono::steady_clock::now();
  while (time_left(deadline) > Millis{0}) {
    Result<Control> control = Control::open(address, std::chrono::seconds(60));
    if (control.ok()) {
      const Result<resp::Value> answer = control->ask(words);
      if (answer.ok() && !answer->is_error() && answer->type != resp::Value::Type::kNull)
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    }
    ::poll(nullptr, 0, 2);
  }
  return failed("no answer before the deadline");
}

}  // namespace delayq::bench
