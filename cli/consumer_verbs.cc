// Those who do the work: ack, nack, extend; pop has a file of its own.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/human.h"
#include "cli/verb.h"
#include "json/writer.h"

namespace delayq::cli {

namespace {

using Text = std::optional<std::string>;

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
  add_pop_verbs(verbs);
  verbs.push_back(std::make_unique<Ack>());
  verbs.push_back(std::make_unique<Nack>());
  verbs.push_back(std::make_unique<Extend>());
}

}  // namespace delayq::cli
