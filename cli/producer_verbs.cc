// Those who have work to be done later: get, cancel, reschedule; push has a file of its own.
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
  add_push_verb(verbs);
  verbs.push_back(std::make_unique<Get>());
  verbs.push_back(std::make_unique<Cancel>());
  verbs.push_back(std::make_unique<Reschedule>());
}

}  // namespace delayq::cli
