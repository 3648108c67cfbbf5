// events: news of single jobs as they happen.
#include <array>
#include <ostream>
#include <poll.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/child.h"
#include "cli/connection.h"
#include "cli/events_view.h"
#include "cli/terminal.h"
#include "core/duration.h"
#include "core/moment.h"
#include "core/text.h"
#include "json/writer.h"

namespace delayq::cli {

namespace {

constexpr size_t kEventName = 60;
constexpr size_t kEventError = 300;

/// Padded to so many columns of a terminal.
std::string padded(std::string text, size_t columns) {
  text.append(columns - std::min(columns, columns_of(text)), ' ');
  return text;
}

}  // namespace

std::string event_line(const Session& session, const resp::Value& news) {
  const std::string time = format_moment(from_unix_ms(number_of(news, "at_ms"))).substr(11, 12);
  const bool is_many = news.find("id") == nullptr;
  const std::string id = is_many ? fmt::format("{} jobs", grouped(number_of(news, "jobs")))
                                 : printable(field_text(news, "id"), kEventName);
  std::vector<std::string> more;
  if (news.find("group") != nullptr)
    more.push_back(fmt::format("group {}", printable(field_text(news, "group"), kEventName)));
  if (news.find("attempt") != nullptr) more.push_back(fmt::format("attempt {}", number_of(news, "attempt")));
  if (news.find("due_ms") != nullptr)
    more.push_back(fmt::format("due {}", session.when(number_of(news, "due_ms"))));
  std::string line =
      fmt::format("{}  {:<11}  {}  {}", time, printable(field_text(news, "news"), kEventName),
                  padded(printable(field_text(news, "topic"), kEventName), 12), padded(id, 24));
  if (!more.empty()) line += fmt::format("  {}", fmt::join(more, ", "));
  if (news.find("error") != nullptr)
    line += fmt::format("  {}", printable(field_text(news, "error"), kEventError));
  line.resize(line.find_last_not_of(' ') + 1);
  return line;
}

std::string event_as_json(const resp::Value& news, std::string_view cursor) {
  std::string out;
  json::Writer json(out);
  const auto moment = [&](std::string_view field) {
    return format_moment(from_unix_ms(number_of(news, field)));
  };
  json.begin_object().key("news").text(field_text(news, "news")).key("at").text(moment("at_ms"));
  json.key("topic").text(field_text(news, "topic"));
  if (news.find("id") != nullptr) {
    json.key("id").text(field_text(news, "id"));
  } else {
    json.key("jobs").number(number_of(news, "jobs"));
  }
  for (const std::string_view field : {"group", "state"}) {
    if (news.find(field) != nullptr) json.key(field).text(field_text(news, field));
  }
  if (news.find("attempt") != nullptr) json.key("attempt").number(number_of(news, "attempt"));
  if (news.find("due_ms") != nullptr) json.key("due_at").text(moment("due_ms"));
  if (news.find("error") != nullptr) json.bytes("error", field_text(news, "error"));
  json.key("cursor").text(cursor).end_object();
  return out;
}

// The verb events.

namespace {

constexpr Millis kNewsPatience = std::chrono::seconds{5};
constexpr Millis kFirstPause{250};
constexpr Millis kLastPause = std::chrono::seconds{10};
/// A connection on which nothing is heard is asked for a sign of life, and given up without one.
constexpr Millis kQuietNews = std::chrono::seconds{15};

const std::vector<std::string>& news_names() {
  static const std::vector<std::string> kNames{"pushed", "due",  "handed_over", "done",
                                               "failed", "dead", "cancelled",   "all"};
  return kNames;
}

class Events final : public Verb {
 public:
  std::string_view name() const override { return "events"; }
  std::string_view help() const override { return "Show what happens to single jobs, until Ctrl-C"; }

  void add_options(CLI::App& app) override {
    app.add_option("--topic", topic_, "Only of this topic");
    app.add_option("--group", group_, "Only of jobs of this group");
    app.add_option("--state", states_, "Only of jobs that are in these states from then on: done,dead")
        ->delimiter(',')
        ->check(CLI::IsMember(job_state_names()));
    app.add_option("--of", kinds_, "Only these news: failed,dead; default all")
        ->delimiter(',')
        ->check(CLI::IsMember(news_names()));
    app.add_option("--after", cursor_, "Go on behind this cursor, of an earlier run with the same options")
        ->type_name("CURSOR");
    app.footer(
        "Examples:\n  delayq events\n  delayq events --topic order --of failed,dead\n"
        "  delayq events --json | jq -r 'select(.news == \"dead\") | .id'");
  }

  Status run(const Session& session) override {
    if (!session.server) return session.server.error();
    const SignalReader signals;
    Millis pause = kFirstPause;
    for (bool is_first = true;; is_first = false) {
      const Status ended = listen(session, signals, pause);
      if (ended) return finish(session);
      const bool may_come_back = !is_first || has_begun_;
      if (!may_come_back || !traits_of(ended.error().code).retryable) return ended;
      session.world.err << fmt::format("delayq events: {}; again in {}\n",
                                       printable(ended.error().detail, kEventError), format_duration(pause))
                        << std::flush;
      if (waits(signals, pause)) return finish(session);
      pause = std::min(pause * 2, kLastPause);
    }
  }

 private:
  using Clock = Connection::Clock;

  /// Returns true when the user wants to end.
  static bool waits(const SignalReader& signals, Millis pause) {
    pollfd entry{.fd = signals.descriptor(), .events = POLLIN, .revents = 0};
    return poll(&entry, 1, static_cast<int>(pause.count())) > 0;
  }

  /// OK: the user has ended it. `pause` is set back when the server answers.
  Status listen(const Session& session, const SignalReader& signals, Millis& pause) {
    Result<Connection> connection = Connection::open(*session.server, kNewsPatience);
    if (!connection) return connection.error();
    if (Status status = begin(*connection); !status) return status;
    has_begun_ = true;
    pause = kFirstPause;
    bool was_asked = false;
    // The output is watched, too: nobody may read it any more, while nothing happens.
    std::array<pollfd, 3> entries{{{.fd = signals.descriptor(), .events = POLLIN, .revents = 0},
                                   {.fd = connection->descriptor(), .events = POLLIN, .revents = 0},
                                   {.fd = STDOUT_FILENO, .events = 0, .revents = 0}}};
    for (;;) {
      std::vector<resp::Value> heard;
      if (Status status = connection->hear(heard); !status) return status;
      for (const resp::Value& each : heard) {
        if (Status status = show(session, each); !status) return status;
      }
      if (!heard.empty()) {
        was_asked = false;
        if (!session.world.out.flush()) return {};
        continue;
      }
      const int ready = poll(entries.data(), entries.size(), static_cast<int>(kQuietNews.count()));
      if (ready < 0) continue;
      if (entries[0].revents != 0 || entries[2].revents != 0) return {};
      if (ready > 0) continue;
      if (was_asked) return Error{ErrorCode::kUnavailable, {}, "nothing is heard from the server"};
      const std::array<std::string_view, 1> ping{"PING"};
      if (Status status = connection->send(ping, kNewsPatience); !status) return status;
      was_asked = true;
    }
  }

  Status begin(Connection& connection) {
    const std::array<std::string_view, 2> hello{"HELLO", "3"};
    Result<resp::Value> reply = connection.ask(hello, kNewsPatience);
    if (reply && !reply->is_error()) {
      Words command{"NEWS", "START"};
      append_option(command, "TOPIC", topic_);
      append_option(command, "GROUP", group_);
      if (!states_.empty()) append_option(command, "STATE", fmt::format("{}", fmt::join(states_, ",")));
      if (!kinds_.empty()) append_option(command, "OF", fmt::format("{}", fmt::join(kinds_, ",")));
      append_option(command, "AFTER", cursor_);
      const std::vector<std::string_view> words(command.begin(), command.end());
      reply = connection.ask(words, kNewsPatience);
    }
    if (!reply) return reply.error();
    if (reply->is_error()) return error_of_reply(reply->text);
    if (reply->type != resp::Value::Type::kBulk) return unexpected_reply();
    cursor_ = reply->text;
    return {};
  }

  Status show(const Session& session, const resp::Value& message) {
    if (message.type != resp::Value::Type::kArray || message.items.size() < 2) return {};  // a sign of life
    const std::string& kind = message.items[0].text;
    if (kind == "news" && message.items.size() == 3) {
      cursor_ = message.items[1].text;
      session.json ? session.say_json(event_as_json(message.items[2], *cursor_))
                   : session.say(event_line(session, message.items[2]), {});
    } else if (kind == "news-missed") {
      const int64_t most = number_in(message.items[1]).value_or(0);
      json::Object object;
      object.text("news", "missed");
      if (most > 0) object.number("at_most", most);
      session.say(most > 0 ? fmt::format("-- missed: at most {} --", grouped(most))
                           : "-- missed: what happened in between is not known --",
                  object.finish());
    } else if (kind == "news-ended") {
      return Error{ErrorCode::kUnauthorized, {}, printable(message.items[1].text, kEventError)};
    }
    return {};
  }

  Status finish(const Session& session) const {
    if (!session.json && session.world.err_is_terminal && cursor_ && session.world.out)
      session.world.err << fmt::format("\nto go on from here: --after {}\n",
                                       printable(*cursor_, kEventError));
    return {};
  }

  std::optional<std::string> topic_, group_, cursor_;
  std::vector<std::string> states_, kinds_;
  bool has_begun_ = false;
};

}  // namespace

void add_events_verb(Verbs& verbs) { verbs.push_back(std::make_unique<Events>()); }

}  // namespace delayq::cli
