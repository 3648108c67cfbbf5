// push: one job, one for each file, or one for each line.
#include <fstream>
#include <istream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/human.h"
#include "cli/push_lines.h"
#include "cli/verb.h"
#include "core/limits.h"
#include "json/writer.h"

namespace delayq::cli {

namespace {

using Text = std::optional<std::string>;

/// All of it. Larger than any body is not read to its end.
Result<std::string> read_body(std::istream& in) {
  std::string body;
  std::string chunk(size_t{256} << 10, '\0');
  while (body.size() <= Limits::kMaxBodyBytes && in) {
    in.read(chunk.data(), static_cast<std::streamsize>(chunk.size()));
    body.append(chunk, 0, static_cast<size_t>(in.gcount()));
  }
  if (in.bad()) return invalid("body: could not be read to its end");
  if (Status status = check_body(body.size(), Limits::kMaxBodyBytes); !status) return status.error();
  return body;
}

Result<std::string> read_file(const std::string& name) {
  std::ifstream in(name, std::ios::binary);
  if (!in || in.peek() == std::ifstream::traits_type::eof()) {
    if (!in.eof()) return invalid(fmt::format("--file: {} cannot be read", name));
    return std::string();
  }
  return read_body(in);
}

class Push final : public Verb {
 public:
  std::string_view name() const override { return "push"; }
  std::string_view help() const override { return "Push a job, to be handed over after a delay"; }

  void add_options(CLI::App& app) override {
    app.add_option("TOPIC", topic_, "The topic")->required();
    app.add_option("DELAY", first_, "30s, 15m, 1h30m, 7d; 0 when left out; not with --at");
    app.add_option("BODY", second_, "The body; - or none: read from standard input");
    CLI::Option* const file =
        app.add_option("--file", files_, "The body is in this file; given several times: a job for each")
            ->type_name("FILE")
            ->expected(1)
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    lines_option_ =
        app.add_option("--lines", lines_, "A job for each line of these files, or of standard input")
            ->type_name("[FILE ...]")
            ->expected(0, CLI::detail::expected_max_vector_size)
            ->excludes(file);
    app.add_option("--id", id_, "Your own id, unique in the topic; else one is made")
        ->excludes(lines_option_);
    app.add_option("--at", at_, "When it is due: 2030-01-31T08:00:00Z or Unix seconds");
    app.add_option("--priority", priority_, "A lower number goes first; 1024 when left out");
    app.add_option("--attempts", attempts_, "Tries before it is dead; 0: no limit");
    app.add_option("--backoff", backoff_, "30s, or 10s,1m,10m, or exponential:1s:2:1h:0.1");
    app.add_option("--lease", lease_, "How long a consumer has it");
    app.add_option("--group", group_, "To be cancelled with others of this group");
    app.add_option("--callback", callback_, "Call this URL when it is due; nobody pops it then");
    app.add_option("--callback-method", method_, "POST, PUT, PATCH or DELETE; the topic's when left out");
    app.add_option("--callback-format", format_,
                   "webhook, cloudevents or callback-api; the topic's when left out");
    CLI::Option* const replace = app.add_flag("--replace", replace_, "Take the place of a job with this id");
    app.add_flag("--keep", keep_, "Leave a job with this id as it is")->excludes(replace);
  }

  Status run(const Session& session) override {
    // With --at there is no delay, so the body is the first word.
    const Text& delay = at_ ? Text{} : first_;
    const Text& given = at_ ? first_ : second_;
    if (at_ && second_) return invalid("delay: cannot be given together with --at");
    const bool from_lines = lines_option_->count() > 0;
    if (given && (from_lines || !files_.empty()))
      return invalid("body: cannot be given together with --file or --lines");
    if (id_ && files_.size() > 1) return invalid("--id: several files cannot have the same id");
    const Words before{"PUSH", topic_, delay.value_or("0")};
    if (from_lines) {
      std::erase(lines_, "");  // what CLI11 makes of no value at all
      return push_lines(session, {.before = before, .after = options(), .files = lines_});
    }
    if (files_.empty()) return push_given(session, before, given.value_or("-"));
    for (const std::string& file : files_) {
      Result<std::string> body = read_file(file);
      if (!body) return Error{body.error().code, {}, fmt::format("{}: {}", file, body.error().detail)};
      if (Status status = push(session, before, std::move(*body)); !status) return status;
    }
    return {};
  }

 private:
  /// What stands behind the body.
  Words options() const {
    Words words;
    append_option(words, "ID", id_);
    append_option(words, "AT", at_);
    append_option(words, "PRI", priority_);
    append_option(words, "ATTEMPTS", attempts_);
    append_option(words, "BACKOFF", backoff_);
    append_option(words, "LEASE", lease_);
    append_option(words, "GROUP", group_);
    append_option(words, "CALLBACK", callback_);
    append_option(words, "METHOD", method_);
    append_option(words, "FORMAT", format_);
    if (replace_) words.emplace_back("REPLACE");
    if (keep_) words.emplace_back("KEEP");
    return words;
  }

  Status push_given(const Session& session, const Words& before, std::string body) {
    if (body == "-") {
      if (session.world.in_is_terminal)
        return invalid("body: is missing: give it after the delay, name a --file, or pipe it in");
      Result<std::string> read = read_body(session.world.in);
      if (!read) return read.error();
      body = std::move(*read);
    }
    return push(session, before, std::move(body));
  }

  Status push(const Session& session, Words command, std::string body) const {
    command.push_back(std::move(body));
    const Words after = options();
    command.insert(command.end(), after.begin(), after.end());
    const Result<resp::Value> reply = session.ask(command);
    if (!reply) return reply.error();
    if (reply->type != resp::Value::Type::kBulk) return unexpected_reply();
    session.say(printable(reply->text, Limits::kIdBytes * 4),
                json::Object().text("topic", topic_).text("id", reply->text).finish());
    return {};
  }

  std::string topic_;
  Text first_, second_, id_, at_, priority_, attempts_, backoff_, lease_, group_, callback_, method_, format_;
  std::vector<std::string> files_, lines_;
  CLI::Option* lines_option_ = nullptr;
  bool replace_ = false;
  bool keep_ = false;
};

}  // namespace

void add_push_verb(Verbs& verbs) { verbs.push_back(std::make_unique<Push>()); }

}  // namespace delayq::cli
