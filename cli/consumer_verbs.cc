// Those who do the work: pop, bpop, ack, nack, extend.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/human.h"
#include "cli/verb.h"
#include "core/duration.h"
#include "core/limits.h"
#include "json/writer.h"

namespace delayq::cli {

namespace {

using Text = std::optional<std::string>;
constexpr size_t kShownBytes = 200;

/// [lease, topic, id, body, attempt, due_ms] as it comes over the wire.
struct Popped {
  const resp::Value& lease;
  const resp::Value& topic;
  const resp::Value& id;
  const resp::Value& body;
  int64_t attempt;
  int64_t due_ms;
};

std::optional<Popped> popped_of(const resp::Value& job) {
  if (job.type != resp::Value::Type::kArray || job.items.size() != 6) return std::nullopt;
  const std::optional<int64_t> attempt = number_in(job.items[4]);
  const std::optional<int64_t> due_ms = number_in(job.items[5]);
  if (!attempt || !due_ms) return std::nullopt;
  return Popped{job.items[0], job.items[1], job.items[2], job.items[3], *attempt, *due_ms};
}

void show_as_json(const Session& session, const Popped& job) {
  session.say({}, json::Object()
                      .text("lease", job.lease.text)
                      .text("topic", job.topic.text)
                      .text("id", job.id.text)
                      .text("body", job.body.text)
                      .number("attempt", job.attempt)
                      .number("due_ms", job.due_ms)
                      .finish());
}

std::vector<std::string> row_of(const Session& session, const Popped& job) {
  return {printable(job.lease.text, kShownBytes),
          printable(job.topic.text, kShownBytes),
          printable(job.id.text, kShownBytes),
          grouped(job.attempt),
          session.when(job.due_ms),
          printable(job.body.text, kShownBytes)};
}

class Pop final : public Verb {
 public:
  /// `blocking`: it waits when it was not told how long.
  explicit Pop(bool blocking) : blocking_(blocking) {}

  std::string_view name() const override { return blocking_ ? "bpop" : "pop"; }
  std::string_view help() const override {
    return blocking_ ? "Wait for jobs, up to an hour, and take them" : "Take jobs that are ready";
  }

  void add_options(CLI::App& app) override {
    app.add_option("TOPIC", topics_, "The topics, the first ones first")->required();
    app.add_option("--count", count_, "Take up to so many; 1 when left out");
    app.add_option("--wait", wait_, blocking_ ? "At most so long; 1h when left out" : "Wait for so long");
    app.add_option("--lease", lease_, "Have so long for the work; else what the topic says");
    app.add_flag("--autoack", autoack_, "Take them as done; none is handed over again");
  }

  Status run(const Session& session) override {
    if (blocking_ && !wait_) wait_ = format_duration(Limits::kMaxWait);
    Words command{"POP"};
    command.insert(command.end(), topics_.begin(), topics_.end());
    append_option(command, "COUNT", count_);
    append_option(command, "WAIT", wait_);
    append_option(command, "LEASE", lease_);
    if (autoack_) command.emplace_back("AUTOACK");
    // What is no duration, the server refuses at once.
    const Result<Millis> wait = parse_duration(wait_.value_or("0"));
    const Result<resp::Value> reply = session.ask(command, wait ? *wait : Millis{});
    if (!reply) return reply.error();
    return show(session, *reply);
  }

 private:
  static Status show(const Session& session, const resp::Value& reply) {
    if (reply.type != resp::Value::Type::kArray) return unexpected_reply();
    Table table;
    table.row({"LEASE", "TOPIC", "ID", "ATTEMPT", "DUE", "BODY"});
    for (const resp::Value& item : reply.items) {
      const std::optional<Popped> job = popped_of(item);
      if (!job) return unexpected_reply();
      if (session.json) {
        show_as_json(session, *job);
      } else {
        table.row(row_of(session, *job));
      }
    }
    if (session.json) return {};
    session.world.out << (reply.items.empty() ? "nothing is ready\n" : table.text());
    return {};
  }

  bool blocking_;
  std::vector<std::string> topics_;
  Text count_, wait_, lease_;
  bool autoack_ = false;
};

class Ack final : public Verb {
 public:
  std::string_view name() const override { return "ack"; }
  std::string_view help() const override { return "Say that jobs are done"; }
  void add_options(CLI::App& app) override {
    app.add_option("LEASE", leases_, "The leases that pop gave")->required();
  }

  Status run(const Session& session) override {
    Words command{"ACK"};
    command.insert(command.end(), leases_.begin(), leases_.end());
    const Result<resp::Value> reply = session.ask(command);
    if (!reply) return reply.error();
    const std::optional<int64_t> count = number_in(*reply);
    if (!count) return unexpected_reply();
    session.say(fmt::format("{} acked", grouped(*count)), json::Object().number("acked", *count).finish());
    const auto asked = static_cast<int64_t>(leases_.size());
    if (*count == asked) return {};
    return Error{ErrorCode::kStaleLease,
                 {},
                 fmt::format("{} of {} leases are not the current ones any more", asked - *count, asked)};
  }

 private:
  std::vector<std::string> leases_;
};

class Nack final : public Verb {
 public:
  std::string_view name() const override { return "nack"; }
  std::string_view help() const override { return "Say that a job failed"; }
  void add_options(CLI::App& app) override {
    app.add_option("LEASE", lease_, "The lease that pop gave")->required();
    app.add_option("--delay", delay_, "Try again after this, instead of the topic's backoff");
    app.add_option("--reason", reason_, "What went wrong; kept with the job");
    app.add_flag("--dead", dead_, "Do not try again");
  }

  Status run(const Session& session) override {
    Words command{"NACK", lease_};
    append_option(command, "DELAY", delay_);
    append_option(command, "REASON", reason_);
    if (dead_) command.emplace_back("DEAD");
    const Result<resp::Value> reply = session.ask(command);
    if (!reply) return reply.error();
    session.say("taken back", json::Object().boolean("ok", true).finish());
    return {};
  }

 private:
  std::string lease_;
  Text delay_, reason_;
  bool dead_ = false;
};

class Extend final : public Verb {
 public:
  std::string_view name() const override { return "extend"; }
  std::string_view help() const override { return "Ask for more time for a job"; }
  void add_options(CLI::App& app) override {
    app.add_option("LEASE", lease_, "The lease that pop gave")->required();
    app.add_option("DURATION", duration_, "From now; else as long as the lease was");
  }

  Status run(const Session& session) override {
    Words command{"EXTEND", lease_};
    if (duration_) command.push_back(*duration_);
    const Result<resp::Value> reply = session.ask(command);
    if (!reply) return reply.error();
    const std::optional<int64_t> until = number_in(*reply);
    if (!until) return unexpected_reply();
    session.say(fmt::format("runs out {}", session.when(*until)),
                json::Object().number("until_ms", *until).finish());
    return {};
  }

 private:
  std::string lease_;
  Text duration_;
};

}  // namespace

void add_consumer_verbs(Verbs& verbs) {
  verbs.push_back(std::make_unique<Pop>(false));
  verbs.push_back(std::make_unique<Pop>(true));
  verbs.push_back(std::make_unique<Ack>());
  verbs.push_back(std::make_unique<Nack>());
  verbs.push_back(std::make_unique<Extend>());
}

}  // namespace delayq::cli
