// doctor: asks a server what the findings are made of, and finds out what answers where none does.
#include <algorithm>
#include <array>
#include <ostream>
#include <poll.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/connection.h"
#include "cli/doctor.h"
#include "cli/terminal.h"
#include "core/duration.h"
#include "core/text.h"

namespace delayq::cli {

namespace {

constexpr Millis kDoctorPatience = std::chrono::seconds{5};
constexpr Millis kProbePatience = std::chrono::seconds{2};
constexpr uint16_t kUsualHttpPort = 9277;
constexpr int kMostTopicPages = 10;
constexpr size_t kMostStats = 200;
/// Between the two looks that show whether the dead jobs grow.
constexpr Millis kBetweenLooks = std::chrono::seconds{1};
constexpr int kFoundProblem = 1;

bool is_local_name(std::string_view host) {
  return host.empty() || host == "localhost" || host == "::1" || host.starts_with("127.");
}

/// What comes back for these bytes; empty: nothing, or no connection.
std::string answer_of(const Server& server, std::string_view bytes, bool& connects) {
  const auto deadline = Stream::Clock::now() + kProbePatience;
  Result<Stream> stream = Stream::open(server, deadline);
  connects = stream.ok();
  std::string input;
  if (!stream || !stream->send(bytes, deadline)) return input;
  constexpr size_t kEnough = 4'096;
  while (input.size() < kEnough) {
    const Result<bool> came = stream->receive(input, deadline);
    if (!came || !*came || input.find("\r\n") != std::string::npos) break;
  }
  return input;
}

/// Reads where RESP clients connect from what /v1/server answers. Nothing else in it matters.
std::string resp_address_in(std::string_view answer) {
  constexpr std::string_view kField = "\"resp\":\"";
  const size_t at = answer.find(kField);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = answer.substr(at + kField.size());
  return std::string(rest.substr(0, rest.find('"')));
}

bool find_http(Server server, uint16_t port, Probe& probe) {
  server.address.port = port;
  bool connects = false;
  const std::string request = fmt::format("GET /v1/server HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
                                          to_string(server.address));
  const auto deadline = Stream::Clock::now() + kProbePatience;
  Result<Stream> stream = Stream::open(server, deadline);
  connects = stream.ok();
  std::string input;
  if (!connects || !stream->send(request, deadline)) return false;
  constexpr size_t kEnough = 65'536;
  while (input.size() < kEnough) {
    const Result<bool> came = stream->receive(input, deadline);
    if (!came || !*came) break;
  }
  const bool is_delayq = input.find("\"resp\":") != std::string::npos ||
                         input.find("delayq") != std::string::npos ||
                         input.find("\"unauthorized\"") != std::string::npos;
  if (!input.starts_with("HTTP/") || !is_delayq) return false;
  probe.http_at = to_string(server.address);
  probe.resp_at = resp_address_in(input);
  return true;
}

Probe probe_of(const Server& server) {
  Probe probe;
  Server plain = server;
  plain.tls.reset();
  probe.plain = answer_of(plain, "*1\r\n$4\r\nPING\r\n", probe.connects);
  if (!probe.connects) {
    find_http(plain, kUsualHttpPort, probe);
    return probe;
  }
  if (probe.plain.starts_with("HTTP/")) {
    find_http(plain, server.address.port, probe);
  } else if (probe.plain.empty()) {
    Server encrypted = server;
    encrypted.tls = Server::Tls{.ca = {}, .certificate = {}, .key = {}, .verify = false};
    probe.speaks_tls = Stream::open(encrypted, Stream::Clock::now() + kProbePatience).ok();
  }
  return probe;
}

class Doctor final : public Verb {
 public:
  std::string_view name() const override { return "doctor"; }
  std::string_view help() const override {
    return "Check the server, and say what to do about what is wrong";
  }
  void add_options(CLI::App& app) override {
    app.footer("Changes nothing. The exit code is 0 when nothing is a problem; a warning is none.");
  }

  Status run(const Session& session) override {
    if (!session.server) return session.server.error();
    server_ = *session.server;
    examine(session);
    if (session.json) {
      session.say_json(findings_as_json(session.server_name, findings_));
    } else {
      constexpr size_t kPipeWidth = 100;
      session.world.out << render_findings(
          findings_, session.world.out_is_terminal ? Terminal::size().width : kPipeWidth);
    }
    return {};
  }

  int exit_code() const override {
    const bool is_bad = std::any_of(findings_.begin(), findings_.end(), [](const Finding& finding) {
      return finding.result == Finding::Result::kProblem;
    });
    return is_bad ? exit_code_ : 0;
  }

 private:
  using Clock = Connection::Clock;

  void examine(const Session& session) {
    const Clock::time_point begun = Clock::now();
    Result<Connection> connection = Connection::open(server_, kDoctorPatience);
    if (!connection) return cannot_connect(connection.error());
    Examined examined;
    examined.asked = session.world.now();
    Result<resp::Value> server = ask(*connection, {"SERVER"});
    examined.answered = session.world.now();
    if (!server) return cannot_ask(*connection, server.error());
    examined.server = std::move(*server);
    const Millis took = std::chrono::ceil<Millis>(Clock::now() - begun);
    const resp::Value& about = examined.server;
    const Moment started = from_unix_ms(number_of(about, "started_ms"));
    const Moment now = from_unix_ms(number_of(about, "now_ms"));
    findings_.push_back(
        {"server", Finding::Result::kOk,
         printable(
             fmt::format("{} answers in {}: delayq {}, up for {}, HTTP at {}", to_string(server_.address),
                         format_duration(took), field_text(about, "version"),
                         format_duration(std::chrono::floor<std::chrono::seconds>(now - started)),
                         field_text(about, "http")),
             300)});
    ask_for_figures(*connection, examined);
    const bool skips_check = server_.tls && !server_.tls->verify;
    Findings found = judge(examined, server_.tls.has_value(), is_local_name(server_.address.host));
    for (Finding& finding : found) {
      if (finding.about == "TLS" && skips_check) {
        finding = {"TLS", Finding::Result::kWarning, "encrypted, but the server's certificate is not checked",
                   "use --ca FILE instead of --insecure"};
      }
      findings_.push_back(std::move(finding));
    }
  }

  static Result<resp::Value> ask(Connection& connection, const Words& command) {
    const std::vector<std::string_view> words(command.begin(), command.end());
    Result<resp::Value> reply = connection.ask(words, kDoctorPatience);
    if (reply && reply->is_error()) return error_of_reply(reply->text);
    return reply;
  }

  static std::optional<resp::Value> ask_if_allowed(Connection& connection, const Words& command) {
    Result<resp::Value> reply = ask(connection, command);
    return reply ? std::optional(std::move(*reply)) : std::nullopt;
  }

  static void ask_for_figures(Connection& connection, Examined& examined) {
    examined.totals = ask_if_allowed(connection, {"STATS"});
    const Clock::time_point first = Clock::now();
    examined.consumers = ask_if_allowed(connection, {"CONSUMERS", "COUNT", "1"});
    const Result<resp::Value> ready = ask(connection, {"READY"});
    if (!ready) examined.ready = ready.error();
    ask_for_topics(connection, examined);
    if (!examined.totals || number_of(*examined.totals, "dead") == 0) return;
    const auto left = std::chrono::ceil<Millis>(first + kBetweenLooks - Clock::now());
    poll(nullptr, 0, static_cast<int>(std::max<int64_t>(left.count(), 0)));
    examined.later = ask_if_allowed(connection, {"STATS"});
  }

  static void ask_for_topics(Connection& connection, Examined& examined) {
    std::string cursor;
    for (int page = 0; page < kMostTopicPages; ++page) {
      const std::optional<resp::Value> reply = ask_if_allowed(connection, {"TOPICS", cursor, "1000"});
      if (!reply || !is_page(*reply)) break;
      for (const resp::Value& row : reply->items[1].items) {
        if (row.items.size() < 7) continue;
        const auto count = [&row](size_t place) { return number_in(row.items[place]).value_or(0); };
        examined.topics.push_back({row.items[0].text, count(2), count(3), count(5), count(6) != 0});
      }
      cursor = reply->items[0].text;
      if (cursor.empty()) break;
    }
    examined.has_all_topics = cursor.empty();
    std::vector<Examined::Topic*> with_ready;
    for (Examined::Topic& topic : examined.topics) {
      if (topic.ready > 0 && !topic.is_paused) with_ready.push_back(&topic);
    }
    std::sort(with_ready.begin(), with_ready.end(),
              [](const auto* a, const auto* b) { return a->ready > b->ready; });
    with_ready.resize(std::min(with_ready.size(), kMostStats));
    for (Examined::Topic* const topic : with_ready)
      topic->stats = ask_if_allowed(connection, {"STATS", topic->name});
  }

  void cannot_connect(const Error& error) {
    exit_code_ = traits_of(error.code).exit_code;
    if (error.code == ErrorCode::kUnauthorized) {
      findings_.push_back(
          {"server", Finding::Result::kOk, fmt::format("{} answers", to_string(server_.address))});
      const bool is_open = error.detail.find("no tokens are configured") != std::string::npos;
      findings_.push_back(
          {"token", Finding::Result::kProblem,
           is_open ? "a token is given, but the server has none configured and refuses it"
                   : "the server refuses the token",
           is_open ? "leave --token away, and unset DELAYQ_TOKEN"
                   : "is it the secret (dq_...) and not its hash, complete, and of this server? delayq "
                     "token new makes another"});
      return;
    }
    if (error.code == ErrorCode::kInvalid) {  // a file of ours
      findings_.push_back({"TLS", Finding::Result::kProblem, printable(error.detail, 300),
                           "see --ca, --cert and --key, and $DELAYQ_CA"});
      return;
    }
    findings_.push_back(explain_unreachable(server_, error, probe_of(server_)));
  }

  /// The connection is there, but the first question got an error.
  void cannot_ask(Connection& connection, const Error& error) {
    exit_code_ = traits_of(error.code).exit_code;
    if (error.code == ErrorCode::kUnauthorized) {
      findings_.push_back(
          {"server", Finding::Result::kOk, fmt::format("{} answers", to_string(server_.address))});
      findings_.push_back({"token", Finding::Result::kProblem, "the server needs a token, and none is given",
                           "give it with --token or, so that other users cannot see it, in $DELAYQ_TOKEN"});
      return;
    }
    if (error.code == ErrorCode::kUnavailable && error.op.empty())
      return findings_.push_back(explain_unreachable(server_, error, probe_of(server_)));
    exit_code_ = kFoundProblem;
    const std::optional<resp::Value> info = ask_if_allowed(connection, {"INFO"});
    const std::string text = info ? info->text : std::string();
    const std::string_view version = resp::info_line(text, "redis_version");
    if (resp::info_line(text, "server_name") != "delayq" && !version.empty()) {
      findings_.push_back(
          {"server", Finding::Result::kProblem,
           fmt::format("{} is a Redis {}, not a delayq", to_string(server_.address), printable(version, 40)),
           "name the address of the delayq server: --server HOST:PORT"});
    } else {
      findings_.push_back(
          {"server", Finding::Result::kProblem,
           fmt::format("{} answers: {}", to_string(server_.address), printable(error.detail, 300)),
           "it may be an earlier version of delayq, without SERVER: use its own command line"});
    }
  }

  Server server_;
  Findings findings_;
  int exit_code_ = kFoundProblem;
};

}  // namespace

void add_doctor_verb(Verbs& verbs) { verbs.push_back(std::make_unique<Doctor>()); }

}  // namespace delayq::cli
