// Those who have work to be done later: push, get, cancel, reschedule.
#include <istream>
#include <iterator>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/human.h"
#include "cli/show.h"
#include "cli/verb.h"
#include "core/limits.h"
#include "core/quote.h"
#include "json/writer.h"

namespace delayq::cli {

namespace {

using Text = std::optional<std::string>;

Error invalid(std::string detail) { return {ErrorCode::kInvalid, {}, std::move(detail)}; }

/// All of standard input. Larger than any body is not read to its end.
Result<std::string> read_body(const Surroundings& world) {
  if (world.in_is_terminal) {
    return invalid("body: is missing: give it after the delay, or pipe it in");
  }
  std::string body(Limits::kMaxBodyBytes + 1, '\0');
  world.in.read(body.data(), static_cast<std::streamsize>(body.size()));
  body.resize(static_cast<size_t>(world.in.gcount()));
  if (Status status = check_body(body.size(), Limits::kMaxBodyBytes); !status) return status.error();
  return body;
}

class Push final : public Verb {
 public:
  std::string_view name() const override { return "push"; }
  std::string_view help() const override { return "Push a job, to be handed over after a delay"; }

  void add_options(CLI::App& app) override {
    app.add_option("TOPIC", topic_, "The topic")->required();
    app.add_option("DELAY", first_, "30s, 15m, 1h30m, 7d; 0 when left out; not with --at");
    app.add_option("BODY", second_, "The body; - or none: read from standard input");
    app.add_option("--id", id_, "Your own id, unique in the topic; else one is made");
    app.add_option("--at", at_, "When it is due: 2030-01-31T08:00:00Z or Unix seconds");
    app.add_option("--priority", priority_, "A lower number goes first; 1024 when left out");
    app.add_option("--attempts", attempts_, "Tries before it is dead; 0: no limit");
    app.add_option("--backoff", backoff_, "30s, or 10s,1m,10m, or exponential:1s:2:1h:0.1");
    app.add_option("--lease", lease_, "How long a consumer has it");
    app.add_option("--group", group_, "To be cancelled with others of this group");
    app.add_option("--callback", callback_, "Where a webhook goes");
    CLI::Option* const replace = app.add_flag("--replace", replace_, "Take the place of a job with this id");
    app.add_flag("--keep", keep_, "Leave a job with this id as it is")->excludes(replace);
  }

  Status run(const Session& session) override {
    if (at_ && second_) return invalid("delay: cannot be given together with --at");
    // With --at there is no delay, so the body is the first word.
    const Text& delay = at_ ? Text{} : first_;
    const Text& given = at_ ? first_ : second_;
    std::string body = given.value_or("-");
    if (body == "-") {
      Result<std::string> read = read_body(session.world);
      if (!read) return read.error();
      body = std::move(*read);
    }
    Words command{"PUSH", topic_, delay.value_or("0"), std::move(body)};
    append_option(command, "ID", id_);
    append_option(command, "AT", at_);
    append_option(command, "PRI", priority_);
    append_option(command, "ATTEMPTS", attempts_);
    append_option(command, "BACKOFF", backoff_);
    append_option(command, "LEASE", lease_);
    append_option(command, "GROUP", group_);
    append_option(command, "CALLBACK", callback_);
    if (replace_) command.emplace_back("REPLACE");
    if (keep_) command.emplace_back("KEEP");
    const Result<resp::Value> reply = session.ask(command);
    if (!reply) return reply.error();
    if (reply->type != resp::Value::Type::kBulk) return unexpected_reply();
    session.say(printable(reply->text, Limits::kIdBytes * 4),
                json::Object().text("topic", topic_).text("id", reply->text).finish());
    return {};
  }

 private:
  std::string topic_;
  Text first_, second_, id_, at_, priority_, attempts_, backoff_, lease_, group_, callback_;
  bool replace_ = false;
  bool keep_ = false;
};

class Get final : public Verb {
 public:
  std::string_view name() const override { return "get"; }
  std::string_view help() const override { return "Look a job up"; }

  void add_options(CLI::App& app) override {
    app.add_option("TOPIC", topic_, "The topic")->required();
    app.add_option("ID", id_, "The job's id")->required();
  }

  Status run(const Session& session) override {
    const Result<resp::Value> reply = session.ask({"GET", topic_, id_});
    if (!reply) return reply.error();
    if (reply->type == resp::Value::Type::kNull) {
      return Error{ErrorCode::kNotFound, {}, fmt::format("topic {} has no job {}", topic_, quote(id_))};
    }
    return show_map(session, *reply) ? Status{} : unexpected_reply();
  }

 private:
  std::string topic_, id_;
};

class Cancel final : public Verb {
 public:
  std::string_view name() const override { return "cancel"; }
  std::string_view help() const override { return "Take a job back, or a whole group"; }

  void add_options(CLI::App& app) override {
    app.add_option("TOPIC", topic_, "The topic");
    app.add_option("ID", id_, "The job's id");
    app.add_option("--group", group_, "Cancel all jobs of this group instead");
  }

  Status run(const Session& session) override {
    if (group_) return topic_ ? invalid("group: is given instead of TOPIC and ID") : run_group(session);
    if (!topic_ || !id_) return invalid("TOPIC and ID are needed, or --group");
    const Result<resp::Value> reply = session.ask({"CANCEL", *topic_, *id_});
    if (!reply) return reply.error();
    if (reply->text.empty()) return unexpected_reply();
    session.say(printable(reply->text, Limits::kIdBytes),
                json::Object().text("result", reply->text).finish());
    return {};
  }

 private:
  Status run_group(const Session& session) {
    const Result<resp::Value> reply = session.ask({"CANCELGROUP", *group_});
    if (!reply) return reply.error();
    const std::optional<int64_t> count = number_in(*reply);
    if (!count) return unexpected_reply();
    session.say(fmt::format("{} cancelled", grouped(*count)),
                json::Object().number("cancelled", *count).finish());
    return {};
  }

  Text topic_, id_, group_;
};

class Reschedule final : public Verb {
 public:
  std::string_view name() const override { return "reschedule"; }
  std::string_view help() const override { return "Move a job to another time; 0 runs it now"; }

  void add_options(CLI::App& app) override {
    app.add_option("TOPIC", topic_, "The topic")->required();
    app.add_option("ID", id_, "The job's id")->required();
    app.add_option("DELAY", delay_, "From now: 30s, 15m, 1h30m, 7d");
    app.add_option("--at", at_, "Or a moment: 2030-01-31T08:00:00Z or Unix seconds");
  }

  Status run(const Session& session) override {
    if (delay_.has_value() == at_.has_value()) return invalid("either DELAY or --at is needed");
    Words command{"RESCHEDULE", topic_, id_};
    if (delay_) command.push_back(*delay_);
    append_option(command, "AT", at_);
    const Result<resp::Value> reply = session.ask(command);
    if (!reply) return reply.error();
    session.say("moved", json::Object().boolean("ok", true).finish());
    return {};
  }

 private:
  std::string topic_, id_;
  Text delay_, at_;
};

}  // namespace

void add_producer_verbs(Verbs& verbs) {
  verbs.push_back(std::make_unique<Push>());
  verbs.push_back(std::make_unique<Get>());
  verbs.push_back(std::make_unique<Cancel>());
  verbs.push_back(std::make_unique<Reschedule>());
}

}  // namespace delayq::cli
