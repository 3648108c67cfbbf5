// For consumers: pop, bpop, ack, nack, extend, and listen, which receives callbacks.
#include <array>
#include <ostream>
#include <strings.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/child.h"
#include "cli/cli.h"
#include "cli/receiver.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "cli/workers.h"
#include "core/duration.h"
#include "core/limits.h"
#include "core/moment.h"
#include "core/text.h"
#include "json/writer.h"

namespace delayq::cli {

// pop and bpop: jobs shown to a person or a program, or a command run for each.

namespace {

using Text = std::optional<std::string>;
constexpr size_t kShownBytes = 200;
constexpr std::string_view kExecLease = "30s";
/// The exit code if the command of a job failed; all others are those of errors.
constexpr int kFailedExit = 1;
constexpr uint32_t kMaxWorkers = 1'000;

std::vector<std::string> row_of(const Session& session, const Popped& job, bool with_headers) {
  std::vector<std::string> row{printable(job.lease, kShownBytes), printable(job.topic, kShownBytes),
                               printable(job.id, kShownBytes), grouped(job.attempt),
                               session.when(job.due_ms)};
  if (with_headers) row.push_back(shown_texts(job.headers, kShownBytes));
  row.push_back(printable(job.body, kShownBytes));
  return row;
}

/// The duration of an option, which is named in the error.
Result<Millis> duration_of(std::string_view option, std::string_view text) {
  Result<Millis> duration = parse_duration(text);
  if (duration) return duration;
  return Error{duration.error().code, {}, fmt::format("{}: {}", option, duration.error().detail)};
}

class Pop final : public Verb {
 public:
  /// `blocking`: it waits even without an option that says how long.
  explicit Pop(bool blocking) : blocking_(blocking) {}

  std::string_view name() const override { return blocking_ ? "bpop" : "pop"; }
  std::string_view help() const override {
    return blocking_ ? "Wait for jobs, up to an hour, and take them" : "Take jobs that are ready";
  }

  void add_options(CLI::App& app) override {
    app.add_option("TOPIC", topics_, "The topics; the first ones take precedence")->required();
    app.add_option("--count", count_, "Take at most this many jobs; default 1");
    app.add_option("--wait", wait_, blocking_ ? "How long to wait at most; default 1h" : "How long to wait");
    app.add_option("--lease", lease_, "How long to hold the job; default the topic's lease, with --exec 30s");
    CLI::Option* const autoack = app.add_flag(
        "--autoack", autoack_, "Mark the jobs as done at once; they are never handed over again");
    exec_ = app.add_option("--exec", command_,
                           "Run this for each job, by sh, or the words after -- without a shell; ack on exit "
                           "code 0, else nack")
                ->type_name("COMMAND")
                ->expected(0, 1)
                ->excludes(autoack);
    app.add_option("--workers", workers_, "With --exec: the number of commands at once; default 1")
        ->needs(exec_)
        ->check(CLI::Range(1U, kMaxWorkers));
    app.add_flag("--forever", forever_, "With --exec: continue until SIGINT or SIGTERM")->needs(exec_);
    app.add_option(kExecWord, words_, "A word of the command")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->group("");
  }

  Status run(const Session& session) override {
    if (blocking_ && !wait_) wait_ = format_duration(Limits::kMaxWait);
    if (exec_->count() > 0) return run_commands(session);
    if (!words_.empty()) return invalid("--exec: is missing; behind -- stands the command that it runs");
    Words command{"POP"};
    command.insert(command.end(), topics_.begin(), topics_.end());
    append_option(command, "COUNT", count_);
    append_option(command, "WAIT", wait_);
    append_option(command, "LEASE", lease_);
    if (autoack_) command.emplace_back("AUTOACK");
    command.emplace_back("HEADERS");
    if (session.json) command.emplace_back("FIELDS");
    // A malformed duration is refused by the server at once.
    const Result<Millis> wait = parse_duration(wait_.value_or("0"));
    const Result<resp::Value> reply = session.ask(command, wait ? *wait : Millis{});
    if (!reply) return reply.error();
    return show(session, *reply);
  }

  int exit_code() const override { return exit_code_; }

 private:
  static Status show(const Session& session, const resp::Value& reply) {
    if (reply.type != resp::Value::Type::kArray) return unexpected_reply();
    if (session.json) return show_as_json(session, reply);
    std::vector<Popped> jobs;
    bool with_headers = false;
    for (const resp::Value& item : reply.items) {
      std::optional<Popped> job = popped_of(item);
      if (!job) return unexpected_reply();
      with_headers |= !job->headers.empty();
      jobs.push_back(std::move(*job));
    }
    Table table;
    std::vector<std::string> titles{"LEASE", "TOPIC", "ID", "ATTEMPT", "DUE"};
    if (with_headers) titles.emplace_back("HEADERS");
    titles.emplace_back("BODY");
    table.row(std::move(titles));
    for (const Popped& job : jobs) table.row(row_of(session, job, with_headers));
    session.world.out << (reply.items.empty() ? "nothing is ready\n" : table.text());
    return {};
  }

  static Status show_as_json(const Session& session, const resp::Value& reply) {
    for (const resp::Value& job : reply.items) {
      if (job.find("id") == nullptr) return unexpected_reply();
      session.say_json(map_as_json(job));
    }
    return {};
  }

  Result<WorkOrder> order() const {
    WorkOrder order{.topics = topics_, .words = words_, .forever = forever_, .workers = workers_};
    if (order.words.empty()) {
      if (command_.empty())
        return invalid("--exec: what is to be run? Give it as one word for sh, or behind --");
      order.words = {"sh", "-c", command_};
    } else if (!command_.empty()) {
      return invalid("--exec: give the command to it or behind --, not both");
    }
    const Result<Millis> wait = duration_of("--wait", wait_.value_or("0"));
    const Result<Millis> lease = duration_of("--lease", lease_.value_or(std::string(kExecLease)));
    if (!wait) return wait.error();
    if (!lease) return lease.error();
    order.wait = *wait;
    order.lease = *lease;
    resp::Value count;
    count.type = resp::Value::Type::kBulk;
    count.text = count_.value_or("1");
    const std::optional<int64_t> number = number_in(count);
    if (!number || *number < 1) return invalid("--count: expected a number from 1");
    order.count = static_cast<uint64_t>(*number);
    return order;
  }

  Status run_commands(const Session& session) {
    const Result<WorkOrder> order = this->order();
    if (!order) return order.error();
    const Result<WorkReport> report = run_workers(session, *order);
    if (!report) return report.error();
    if (report->nacked + report->lost > 0 && !forever_) exit_code_ = kFailedExit;
    if (session.json_asked) return {};
    const auto number = [](uint64_t count) { return grouped(static_cast<int64_t>(count)); };
    std::string text = report->acked + report->nacked + report->lost == 0
                           ? "nothing was ready"
                           : fmt::format("{} done, {} failed", number(report->acked), number(report->nacked));
    if (report->lost > 0) text += fmt::format(", {} lost", number(report->lost));
    session.world.err << "delayq: " << text << "\n";
    return {};
  }

  bool blocking_;
  std::vector<std::string> topics_;
  Text count_, wait_, lease_;
  bool autoack_ = false;
  CLI::Option* exec_ = nullptr;
  std::string command_;
  std::vector<std::string> words_;
  uint32_t workers_ = 1;
  bool forever_ = false;
  int exit_code_ = 0;
};

}  // namespace

std::optional<Popped> popped_of(const resp::Value& job) {
  if (job.type != resp::Value::Type::kArray || job.items.size() != 7) return std::nullopt;
  const std::optional<int64_t> attempt = number_in(job.items[4]);
  const std::optional<int64_t> due_ms = number_in(job.items[5]);
  std::optional<NamedTexts> headers = named_texts(job.items[6]);
  if (!attempt || !due_ms || !headers) return std::nullopt;
  return Popped{job.items[0].text, job.items[1].text, job.items[2].text,  job.items[3].text,
                *attempt,          *due_ms,           std::move(*headers)};
}

void add_pop_verbs(Verbs& verbs) {
  verbs.push_back(std::make_unique<Pop>(false));
  verbs.push_back(std::make_unique<Pop>(true));
}

// For consumers: ack, nack, extend; pop has a file of its own.

namespace {

using Text = std::optional<std::string>;

class Ack final : public Verb {
 public:
  std::string_view name() const override { return "ack"; }
  std::string_view help() const override { return "Mark jobs as done"; }
  void add_options(CLI::App& app) override {
    app.add_option("LEASE", leases_, "The leases that pop returned")->required();
  }

  Status run(const Session& session) override {
    std::vector<Words> commands;
    if (session.json) {  // one command for each lease tells which of them were current
      for (const std::string& lease : leases_) commands.push_back({"ACK", lease});
    } else {
      commands.push_back({"ACK"});
      commands[0].insert(commands[0].end(), leases_.begin(), leases_.end());
    }
    const Result<std::vector<resp::Value>> replies = session.ask_all(commands);
    if (!replies) return replies.error();
    int64_t acked = 0;
    for (const resp::Value& reply : *replies) {
      if (reply.is_error()) return error_of_reply(reply.text);
      const std::optional<int64_t> count = number_in(reply);
      if (!count) return unexpected_reply();
      acked += *count;
      if (session.json) session.say_json(result_of(*count > 0));
    }
    if (!session.json) session.world.out << fmt::format("{} acked\n", grouped(acked));
    const auto asked = static_cast<int64_t>(leases_.size());
    if (acked == asked) return {};
    return Error{ErrorCode::kStaleLease,
                 {},
                 fmt::format("{} of {} leases are not the current ones any more", asked - acked, asked)};
  }

 private:
  static std::string result_of(bool is_acked) {
    if (is_acked) return json::Object().text("result", "acked").finish();
    const ErrorTraits& stale = traits_of(ErrorCode::kStaleLease);
    return json::Object()
        .number("status", stale.http_status)
        .text("code", stale.name)
        .text("detail", "the lease is not the current one any more")
        .finish();
  }

  std::vector<std::string> leases_;
};

class Nack final : public Verb {
 public:
  std::string_view name() const override { return "nack"; }
  std::string_view help() const override { return "Report that a job failed"; }
  void add_options(CLI::App& app) override {
    app.add_option("LEASE", lease_, "The lease that pop returned")->required();
    app.add_option("--delay", delay_, "Try again after this, instead of the topic's backoff");
    app.add_option("--reason", reason_, "What went wrong; kept with the job");
    app.add_flag("--dead", dead_, "Do not try again");
  }

  Status run(const Session& session) override {
    Words command{"NACK", lease_};
    append_option(command, "DELAY", delay_);
    append_option(command, "REASON", reason_);
    if (dead_) command.emplace_back("DEAD");
    command.emplace_back("FIELDS");
    const Result<resp::Value> reply = session.ask(command);
    if (!reply) return reply.error();
    const resp::Value* const result = reply->find("result");
    if (result == nullptr) return unexpected_reply();
    session.say(told(session, *reply, result->text), map_as_json(*reply));
    return {};
  }

 private:
  /// "retried at 2030-01-31T08:00:00.000Z, in 10s".
  static std::string told(const Session& session, const resp::Value& reply, const std::string& result) {
    const resp::Value* const retry = reply.find("retry_ms");
    if (retry == nullptr) return printable(result, kShownBytes);
    return fmt::format("{} at {}, {}", printable(result, kShownBytes),
                       format_moment(from_unix_ms(retry->integer)), session.when(retry->integer));
  }

  std::string lease_;
  Text delay_, reason_;
  bool dead_ = false;
};

class Extend final : public Verb {
 public:
  std::string_view name() const override { return "extend"; }
  std::string_view help() const override { return "Ask for more time for a job"; }
  void add_options(CLI::App& app) override {
    app.add_option("LEASE", lease_, "The lease that pop returned")->required();
    app.add_option("DURATION", duration_, "From now; else as long as the lease was");
  }

  Status run(const Session& session) override {
    Words command{"EXTEND", lease_};
    if (duration_) command.push_back(*duration_);
    const Result<resp::Value> reply = session.ask(command);
    if (!reply) return about_duration(reply.error());
    const std::optional<int64_t> until = number_in(*reply);
    if (!until) return unexpected_reply();
    session.say(fmt::format("runs out {}", session.when(*until)),
                json::Object()
                    .text("result", "extended")
                    .text("lease_until", format_moment(from_unix_ms(*until)))
                    .finish());
    return {};
  }

 private:
  /// A length that is out of range is what the server calls the lease, and not our argument LEASE.
  static Error about_duration(Error error) {
    constexpr std::string_view kLease = "lease ";
    if (error.detail.starts_with(kLease) && error.detail.find("is out of range") != std::string::npos)
      error.detail.replace(0, kLease.size(), "DURATION ");
    return error;
  }

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

namespace {

constexpr std::string_view kOurHeaders = "delayq-";
constexpr size_t kShownBody = 200;
constexpr size_t kShownText = 300;

bool is_ours(std::string_view name) {
  return name.size() > kOurHeaders.size() &&
         ::strncasecmp(name.data(), kOurHeaders.data(), kOurHeaders.size()) == 0;
}

}  // namespace

std::string call_for_people(const ReceivedRequest& request, signing::Verdict verdict, Moment now) {
  const std::string time = format_moment(now);  // 2030-01-31T08:00:00.000Z
  std::string line = fmt::format("{} {} {}", time.substr(time.find('T') + 1, 12),
                                 printable(request.method, 20), printable(request.target, kShownText));
  std::string about;
  for (const auto& [name, value] : request.headers) {
    if (!is_ours(name)) continue;
    about += fmt::format(" {}={}", printable(lowered(name.substr(kOurHeaders.size())), 40),
                         printable(value, kShownText));
  }
  if (!about.empty()) line += " " + about;
  line += fmt::format("  {}", signing::name_of(verdict));
  if (!request.body.empty()) line += "  " + printable(request.body, kShownBody);
  return line;
}

std::string call_for_programs(const ReceivedRequest& request, signing::Verdict verdict, Moment now) {
  std::string line;
  json::Writer json(line);
  json.begin_object();
  json.key("at").text(format_moment(now));
  json.key("method").text(request.method);
  json.key("path").text(request.target);
  json.key("verdict").text(signing::name_of(verdict));
  json.key("headers").begin_object();
  for (const auto& [name, value] : request.headers) json.key(lowered(name)).text(value);
  json.end_object();
  json.bytes("body", request.body);
  json.end_object();
  return line;
}

// listen: a receiver of callbacks, for trying things out.

namespace {

class Listen final : public Verb {
 public:
  std::string_view name() const override { return "listen"; }
  std::string_view help() const override {
    return "Receive callbacks, check their signatures and print them";
  }
  bool is_client() const override { return false; }

  void add_options(CLI::App& app) override {
    app.add_option("--port", address_.port, "The port to listen on; default any free port, which is printed");
    app.add_option("--host", address_.host, "The address to listen on; default 127.0.0.1");
    app.add_option(
        "--secret", secrets_,
        "whsec_...: check signatures with it, and answer 401 to what is not signed with it; may be "
        "given several times");
    app.add_option("--answer", status_, "The status to answer with; default 200")
        ->check(CLI::Range(200, 599));
    app.add_option("--body", body_, "The body to answer with; default ok");
    app.add_flag("--json", json_, "A line of JSON for each call, also on a terminal");
    app.add_flag("--quiet", quiet_, "Only count them");
  }

  Status run(const Session& session) override {
    auto signer = signing::Signer::create(secrets_);
    if (!signer) return Error{signer.error().code, {}, "--secret: " + signer.error().detail};
    signing::Verifier verifier(std::move(*signer));
    Result<Receiver> receiver = Receiver::open(address_);
    if (!receiver) return receiver.error();
    const std::string answer = http_answer(status_, body_);
    const std::string refusal = http_answer(401, "the signature is missing or wrong");
    const SignalReader signals;
    const Address bound{address_.host, receiver->port()};
    session.world.err << fmt::format("listening on http://{}\n", to_string(bound)) << std::flush;
    is_json_ = json_ || !session.world.out_is_terminal;
    Status status = receiver->run(
        signals.descriptor(),
        [&](const ReceivedRequest& request) -> std::string_view {
          return receive(session, verifier, request) ? answer : refusal;
        },
        [&] { session.world.out.flush(); });
    session.world.err << totals() << "\n";
    return status;
  }

 private:
  /// Shows the call. Returns whether it is answered as a success.
  bool receive(const Session& session, signing::Verifier& verifier, const ReceivedRequest& request) {
    const Moment now = session.world.now();
    const signing::SignedHeaders headers{request.header(signing::kIdHeader),
                                         request.header(signing::kTimestampHeader),
                                         request.header(signing::kSignatureHeader)};
    const signing::Verdict verdict = verifier.verify(headers, request.body, now);
    ++counts_[static_cast<size_t>(verdict)];
    if (!quiet_) {
      if (is_json_) {
        session.say_json(call_for_programs(request, verdict, now));
      } else {
        session.world.out << call_for_people(request, verdict, now) << "\n";
      }
    }
    return secrets_.empty() || verdict == signing::Verdict::kVerified;
  }

  /// "3 calls: 2 verified, 1 BAD signature".
  std::string totals() const {
    uint64_t all = 0;
    std::string each;
    for (size_t i = 0; i < counts_.size(); ++i) {
      if (counts_[i] == 0) continue;
      all += counts_[i];
      each += fmt::format("{} {} {}", each.empty() ? ":" : ",", counts_[i],
                          signing::name_of(static_cast<signing::Verdict>(i)));
    }
    return fmt::format("{} calls{}", all, each);
  }

  Address address_{"127.0.0.1", 0};
  std::vector<std::string> secrets_;
  int status_ = 200;
  std::string body_ = "ok";
  bool json_ = false;
  bool quiet_ = false;
  bool is_json_ = false;
  std::array<uint64_t, 5> counts_{};
};

}  // namespace

void add_listen_verb(Verbs& verbs) { verbs.push_back(std::make_unique<Listen>()); }

}  // namespace delayq::cli
