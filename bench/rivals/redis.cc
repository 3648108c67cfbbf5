#include <array>
#include <charconv>
#include <initializer_list>
#include <iterator>
#include <sys/socket.h>
#include <sys/time.h>
#include <vector>

#include <fmt/format.h>

#include "bench/micro/harness.h"
#include "bench/rivals/load_client.h"
#include "bench/rivals/peer_process.h"
#include "bench/rivals/peers.h"

namespace delayq::bench {

namespace {

/// KEYS: pool of jobs, delay bucket. ARGV: id, body, due in ms. Returns 1 for a new job.
constexpr std::string_view kPush =
    "redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) return redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1])";

Error failed(std::string detail) { return {ErrorCode::kUnavailable, "rivals.redis", std::move(detail), {}}; }

void append_command(std::string& out, std::initializer_list<std::string_view> words) {
  fmt::format_to(std::back_inserter(out), "*{}\r\n", words.size());
  for (const std::string_view word : words)
    fmt::format_to(std::back_inserter(out), "${}\r\n{}\r\n", word.size(), word);
}

/// A second connection, for questions whose answer is one bulk string. Blocks, but for at most a few seconds.
class Control {
 public:
  static Result<Control> open(uint16_t port) {
    Result<Descriptor> socket = connect_to(port);
    if (!socket.ok()) return socket.error();
    const timeval limit{5, 0};
    if (::setsockopt(socket->get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0)
      return failed("no time limit");
    return Control(std::move(*socket));
  }

  Result<std::string> ask(std::initializer_list<std::string_view> words) {
    std::string request;
    append_command(request, words);
    if (::send(socket_.get(), request.data(), request.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(request.size())) {
      return failed("a question could not be sent");
    }
    std::string answer;
    for (;;) {
      std::array<char, 16 * 1024> buffer;  // not cleared: recv says how much of it is meant
      const ssize_t count = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
      if (count <= 0) return failed("no answer");
      answer.append(buffer.data(), static_cast<size_t>(count));
      if (answer[0] != '$') return failed("answered " + answer);
      const size_t line = answer.find("\r\n");
      if (line == std::string::npos) continue;
      size_t size = 0;
      std::from_chars(answer.data() + 1, answer.data() + line, size);
      if (answer.size() >= line + 2 + size + 2) return answer.substr(line + 2, size);
    }
  }

  /// A number of INFO.
  Result<uint64_t> info(std::string_view section, std::string_view name) {
    Result<std::string> text = ask({"INFO", section});
    if (!text.ok()) return text.error();
    const std::string field = fmt::format("\n{}:", name);
    const size_t at = text->find(field);
    uint64_t value = 0;
    if (at == std::string::npos) return failed(fmt::format("INFO has no {}", name));
    std::from_chars(text->data() + at + field.size(), text->data() + text->size(), value);
    return value;
  }

  /// used_memory once the load's connections and their buffers are gone.
  Result<uint64_t> memory(Deadline deadline) {
    while (time_left(deadline) > Millis{0}) {
      const Result<uint64_t> clients = info("clients", "connected_clients");
      if (!clients.ok()) return clients.error();
      if (*clients == 1) return info("memory", "used_memory");
    }
    return failed("connections stay");
  }

 private:
  explicit Control(Descriptor socket) : socket_(std::move(socket)) {}

  Descriptor socket_;
};

std::vector<std::string> command(uint16_t port, const std::string& directory, std::string_view fsync) {
  // No rewriting of the log: in a real life it costs, but not in the first seconds of a measurement.
  return {"redis-server",
          "--bind",
          "127.0.0.1",
          "--port",
          std::to_string(port),
          "--dir",
          directory,
          "--save",
          "",
          "--appendonly",
          "yes",
          "--appendfsync",
          std::string(fsync),
          "--auto-aof-rewrite-percentage",
          "0"};
}

Load pushes(uint64_t jobs, const std::string& script) {
  constexpr uint64_t kFirstDue = 1'800'003'600'000;
  Load load;
  load.requests = jobs;
  load.good_answer = ":1\r";
  load.append_request = [script, body = std::string(kBodySize, 'b')](uint64_t number, std::string& out) {
    const std::string id = JobMaker::id(number);
    const std::string due =
        std::to_string(kFirstDue + number / 100);  // as they come: about 100 in a millisecond
    append_command(out, {"EVALSHA", script, "2", "order:jobs", "order:delay", id, body, due});
  };
  return load;
}

}  // namespace

Result<Measurement> measure_redis(uint64_t jobs, std::string_view fsync) {
  const Deadline deadline = std::chrono::steady_clock::now() + kPeerLimit;
  const TempDirectory directory;
  const Result<uint16_t> port = free_loopback_port();
  if (!port.ok()) return port.error();
  const auto peer =
      PeerProcess::start(command(*port, directory.path(), fsync), *port, directory.path(), deadline);
  if (!peer.ok()) return peer.error();

  Result<Control> control = Control::open(*port);
  if (!control.ok()) return control.error();
  const Result<std::string> script = control->ask({"SCRIPT", "LOAD", kPush});
  if (!script.ok()) return script.error();
  const Result<uint64_t> before = control->memory(deadline);
  if (!before.ok()) return before.error();
  const Result<LoadResult> done = run_load(*port, pushes(jobs, *script), deadline);
  if (!done.ok()) return done.error();
  const Result<uint64_t> after = control->memory(std::chrono::steady_clock::now() + std::chrono::seconds(5));
  if (!after.ok()) return after.error();
  const auto answered = static_cast<double>(done->answered);
  return Measurement{done->answered, answered / done->seconds,
                     (static_cast<double>(*after) - static_cast<double>(*before)) / answered};
}

}  // namespace delayq::bench
