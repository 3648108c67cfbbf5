#include "cli/takeover.h"

#include <fstream>
#include <iterator>
#include <memory>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/importing.h"
#include "cli/seeds/layout.h"
#include "cli/terminal.h"
#include "core/limits.h"
#include "json/writer.h"
#include "net/redis/options.h"
#include "resp/value.h"

namespace delayq::cli {

namespace {

constexpr Millis kRedisConnectPatience = std::chrono::seconds{5};
constexpr Millis kRedisReplyPatience = std::chrono::minutes{1};

/// Errors of a connection give advice for a delayq server; for a Redis the advice is about its URL.
Error of_redis(const net::redis::Address& address, Error error) {
  std::string_view what = error.detail;
  const bool may_want_tls = what.find("--tls") != std::string_view::npos;
  what = what.substr(0, what.find(". "));
  const std::string_view advice = may_want_tls ? "; if it speaks TLS there, the URL begins with rediss" : "";
  error.detail = fmt::format("URL: Redis at {}: {}{}", net::redis::to_string(address), what, advice);
  error.op = "redis";
  return error;
}

Status tell(Connection& connection, const std::vector<std::string_view>& command, ErrorCode code) {
  const Result<resp::Value> reply = connection.ask(command, kRedisReplyPatience);
  if (!reply) return reply.error();
  if (!reply->is_error()) return {};
  std::string said = fmt::format("it says: {}", reply->text);
  while (said.ends_with('.')) said.pop_back();
  if (code == ErrorCode::kUnauthorized)
    said += "; redis://USER:PASSWORD@HOST or redis://:PASSWORD@HOST is right";
  return Error{code, {}, std::move(said)};
}

Status greet(Connection& connection, const net::redis::ClientOptions& said) {
  if (!said.password.empty()) {
    std::vector<std::string_view> command{"AUTH"};
    if (!said.user.empty()) command.emplace_back(said.user);
    command.emplace_back(said.password);
    if (Status status = tell(connection, command, ErrorCode::kUnauthorized); !status) return status;
  }
  // Refused without a password where one is needed.
  const ErrorCode code = said.password.empty() ? ErrorCode::kUnauthorized : ErrorCode::kUnavailable;
  if (Status status = tell(connection, {"PING"}, code); !status) return status;
  if (said.database == 0) return {};
  const std::string database = std::to_string(said.database);
  return tell(connection, {"SELECT", database}, ErrorCode::kInvalid);
}

/// Returns false also if the command is not allowed.
bool is_member(Connection& connection) {
  const Result<resp::Value> info =
      connection.ask(std::vector<std::string_view>{"INFO", "cluster"}, kRedisReplyPatience);
  return info && resp::info_line(info->text, "cluster_enabled") == "1";
}

}  // namespace

Result<RedisPlace> open_redis(const std::string& url) {
  const Result<net::redis::ClientOptions> said = net::redis::parse_url(url);
  if (!said) return invalid("URL: " + said.error().detail);
  if (said->mode != net::redis::Mode::kStandalone || said->addresses.size() != 1)
    return invalid("URL: name the one server that has the jobs: redis://host:port/database");
  const net::redis::Address& address = said->addresses.front();
  Server server{.address = {address.host, address.port}, .token = {}, .tls = {}};
  if (said->tls.is_on) server.tls = Server::Tls{};
  Result<Connection> opened = Connection::open(server, kRedisConnectPatience);
  if (!opened) return of_redis(address, opened.error());
  auto connection = std::make_shared<Connection>(std::move(*opened));
  if (Status status = greet(*connection, *said); !status) return of_redis(address, status.error());
  return RedisPlace{seeds::RedisReader([connection](std::span<const seeds::Words> commands) {
                      return connection->ask_all(commands, kRedisReplyPatience);
                    }),
                    fmt::format("{}/{}", net::redis::to_string(address), said->database),
                    is_member(*connection)};
}

namespace {

constexpr size_t kFirstLines = 3;
constexpr size_t kShownLine = 160;
constexpr size_t kShownName = 60;
constexpr size_t kMostTopics = 40;
/// At most this many different problems are kept; the others are counted together.
constexpr size_t kMostProblems = 20;

std::string number(uint64_t count) { return grouped(static_cast<int64_t>(count)); }

}  // namespace

void TakeoverReport::found(const seeds::SeedJob& job, Moment now) {
  ++jobs_;
  Topic& topic = topics_[job.topic];
  const bool is_due = job.due <= now;
  ++(is_due ? topic.due : topic.delayed);
  due_ += is_due ? 1 : 0;
  if (first_.size() < kFirstLines) first_.push_back(seeds::line_of(job, now));
}

void TakeoverReport::unreadable(const std::string& where, const std::string& why) {
  ++unreadable_;
  const bool is_known = problems_.contains(why) || problems_.size() < kMostProblems;
  Problem& problem = problems_[is_known ? why : "something else"];
  if (problem.count++ == 0) problem.example = where;
}

void TakeoverReport::answered(const std::string& where, const resp::Value& answer) {
  const std::optional<Error> error = counts_.add(answer);
  if (!error) return;
  unreadable(where, error->detail);
  --unreadable_;  // counted as failed
}

void TakeoverReport::left(const std::string& where) {
  ++left_;
  unreadable(where, "not removed there: another job has this id here");
  --unreadable_;
}

std::string TakeoverReport::problems_text() const {
  std::string text;
  for (const auto& [why, problem] : problems_)
    text += fmt::format("  {}  {}, as {}\n", number(problem.count), printable(why, kShownLine),
                        printable(problem.example, kShownName));
  return text;
}

std::string TakeoverReport::text(const Heading& heading) const {
  std::string text = fmt::format("{} in {}: {} jobs wait, {} of them are due", heading.system, heading.from,
                                 number(jobs_), number(due_));
  if (over_ > 0) text += fmt::format("; {} that are over stay there", number(over_));
  if (gone_ > 0) text += fmt::format("; {} ids without a job: removed there, or expired", number(gone_));
  text += "\n";
  if (!heading.kafka.empty())
    text += fmt::format("Of them in Kafka: {} records of {}\n", number(heading.records), heading.kafka);
  Table table;
  table.row({"TOPIC", "DELAYED", "DUE"});
  size_t shown = 0;
  for (const auto& [name, topic] : topics_) {
    if (++shown > kMostTopics) break;
    table.row({printable(name, kShownName), number(topic.delayed), number(topic.due)});
  }
  if (!topics_.empty()) text += table.text();
  if (topics_.size() > kMostTopics) text += fmt::format("and {} more topics\n", topics_.size() - kMostTopics);
  if (unreadable_ > 0) text += fmt::format("{} cannot be taken over:\n", number(unreadable_));
  if (unreadable_ == 0 && !problems_.empty()) text += "Problems:\n";
  text += problems_text();
  if (heading.is_dry_run) {
    if (!first_.empty()) text += "The first of them:\n";
    for (const std::string& line : first_) text += printable(line, kShownLine) + "\n";
    if (jobs_ + unreadable_ + gone_ + over_ == 0)
      return text + "Nothing was changed. Are --from and the database behind the last / of the URL right?";
    return text + fmt::format("Nothing was changed. --yes takes them over into {}.", heading.to);
  }
  text += fmt::format("Taken over into {}: {}", heading.to, counts_.text());
  if (heading.removes) text += fmt::format("; {} removed there", number(removed_));
  return text;
}

std::string TakeoverReport::json(const Heading& heading) const {
  std::string text;
  json::Writer json(text);
  json.begin_object().key("system").text(heading.system).key("from").text(heading.from);
  json.key("dry_run").boolean(heading.is_dry_run);
  json.key("jobs").number(jobs_).key("due").number(due_).key("unreadable").number(unreadable_);
  if (!heading.kafka.empty()) json.key("records").number(heading.records);
  json.key("over").number(over_).key("gone").number(gone_).key("topics").begin_array();
  for (const auto& [name, topic] : topics_) {
    json.begin_object().key("topic").text(name).key("delayed").number(topic.delayed);
    json.key("due").number(topic.due).end_object();
  }
  json.end_array().key("problems").begin_array();
  for (const auto& [why, problem] : problems_) {
    json.begin_object().key("problem").text(why).key("jobs").number(problem.count);
    json.key("example").text(problem.example).end_object();
  }
  json.end_array();
  if (!heading.is_dry_run) {
    for (const std::string_view outcome : ImportCounts::kOutcomes)
      json.key(outcome).number(counts_.of(outcome));
    json.key("failed").number(counts_.failed()).key("removed").number(removed_).key("left").number(left_);
  }
  json.end_object();
  return text;
}

namespace {

using seeds::SeedJob;

/// Stores jobs as they are found, batch by batch; in a dry run it only counts them.
class Takeover final : public seeds::Sink {
 public:
  Takeover(const seeds::RedisReader& redis, const AskAll* ask, Moment now, bool removes,
           std::function<void(uint64_t)> progress)
      : redis_(redis), ask_(ask), now_(now), removes_(removes), progress_(std::move(progress)) {}

  Moment now() const override { return now_; }
  Status job(SeedJob job) override {
    if (job.due == Moment{}) job.due = now_;  // it was never delayed
    for (const Status& status : {check_topic(job.topic), check_id(job.id)}) {
      if (status) continue;
      unreadable(fmt::format("{} {}", job.topic, job.id), status.error().detail);
      return {};
    }
    report_.found(job, now_);
    progress_(report_.jobs());
    if (ask_ == nullptr) return {};
    lines_.push_back(seeds::line_of(job, now_));
    bytes_ += lines_.back().size();
    batch_.push_back(std::move(job));
    return lines_.size() >= kMostImportLines || bytes_ >= kMostImportBytes ? send() : Status{};
  }
  void unreadable(std::string where, std::string why) override { report_.unreadable(where, why); }
  void over() override { report_.over(); }
  void gone() override { report_.gone(); }

  /// What is left of the last batch.
  Status send() {
    if (lines_.empty()) return {};
    const auto answers = import_lines(one_by_one(*ask_), "keep", std::exchange(lines_, {}));
    bytes_ = 0;
    const std::vector<SeedJob> batch = std::exchange(batch_, {});
    if (!answers) return answers.error();
    std::vector<const SeedJob*> here;
    std::vector<const SeedJob*> kept;
    for (size_t i = 0; i < batch.size(); ++i) {
      report_.answered(where(batch[i]), (*answers)[i]);
      const std::string& outcome = (*answers)[i].text;
      if (outcome == "created") here.push_back(&batch[i]);
      if (outcome == "kept" && removes_) kept.push_back(&batch[i]);
    }
    if (Status status = compare(kept, here); !status) return status;
    return removes_ ? remove(here) : Status{};
  }

  const TakeoverReport& report() const { return report_; }

 private:
  static std::string where(const SeedJob& job) { return fmt::format("{} {}", job.topic, job.id); }

  /// Adds to `here` the jobs that this server already has from an earlier run: the same id and body.
  Status compare(const std::vector<const SeedJob*>& kept, std::vector<const SeedJob*>& here) {
    std::vector<Known> jobs;
    for (const SeedJob* job : kept) jobs.push_back({job->topic, job->id, job->body});
    const Result<std::vector<bool>> same = are_there(*ask_, jobs);
    if (!same) return same.error();
    for (size_t i = 0; i < kept.size(); ++i)
      (*same)[i] ? here.push_back(kept[i]) : report_.left(where(*kept[i]));
    return {};
  }

  Status remove(const std::vector<const SeedJob*>& jobs) {
    std::vector<Words> commands;
    for (const SeedJob* job : jobs) commands.insert(commands.end(), job->removal.begin(), job->removal.end());
    const auto replies = redis_.ask(commands);
    if (!replies) return replies.error();
    report_.removed(jobs.size());
    return {};
  }

  const seeds::RedisReader& redis_;
  const AskAll* ask_;  ///< null: a dry run
  Moment now_;
  bool removes_;
  std::function<void(uint64_t)> progress_;
  TakeoverReport report_;
  Words lines_;
  std::vector<SeedJob> batch_;
  size_t bytes_ = 0;
};

}  // namespace

void TakeoverOptions::add_to(CLI::App& app) {
  const std::string systems = fmt::format("{}", fmt::join(seeds::kSystems, ", "));
  app.add_option(
         "--from", from_,
         "Take over the jobs that wait in another delay queue's Redis, named by its URL instead of FILE: " +
             systems + ". Only prints what it would do, unless --yes is given")
      ->check(CLI::IsMember(std::vector<std::string>(seeds::kSystems.begin(), seeds::kSystems.end())))
      ->type_name("SYSTEM");
  app.add_flag("--yes", yes_, "With --from: do it");
  app.add_flag("--dry-run", dry_run_, "With --from: do not do it, which is the default");
  app.add_flag("--remove", remove_, "With --from and --yes: remove jobs there once they are durable here");
  app.add_option("--buckets", buckets_,
                 "With --from: how many delay buckets there are; default all that are found")
      ->check(CLI::Range(1, 100'000));
  app.add_option("--bucket-name", bucket_name_,
                 "With --from: what the delay buckets are called when that was configured, as my_bucket_%d");
  app.add_option(
      "--kafka", kafka_,
      "With --from go-delay-queue that runs with -t kafka: HOST:PORT,HOST:PORT of some brokers; reads "
      "its delay topics, too");
  app.add_option(
      "--kafka-group", kafka_group_,
      "With --kafka: the consumer group of go-delay-queue; default the only one that has read there");
  app.add_option(
      "--kafka-file", kafka_file_,
      "Instead of --kafka, or with it: go-delay-queue's own configuration file, for brokers, login, "
      "group and names of topics");
}

Status TakeoverOptions::check_unwanted() const {
  const std::pair<bool, std::string_view> said[] = {{dry_run_, "--dry-run"},
                                                    {yes_, "--yes"},
                                                    {remove_, "--remove"},
                                                    {buckets_ != 0, "--buckets"},
                                                    {!bucket_name_.empty(), "--bucket-name"},
                                                    {!kafka_.empty(), "--kafka"},
                                                    {!kafka_group_.empty(), "--kafka-group"},
                                                    {!kafka_file_.empty(), "--kafka-file"}};
  for (const auto& [is_said, option] : said) {
    if (is_said) return invalid(fmt::format("{}: goes only with --from; a FILE is imported at once", option));
  }
  return {};
}

/// No job waits there. That is a success only if there are no keys that look like jobs.
Status TakeoverOptions::check_empty(const seeds::RedisReader& redis) const {
  const Result<std::vector<std::string>> found = seeds::look_alikes(redis);
  if (!found) return found.error();
  if (found->empty()) return {};
  return Error{ErrorCode::kNotFound,
               {},
               fmt::format("no job of {} waits there, but there are keys that look like jobs: {}", from_,
                           fmt::join(*found, "; "))};
}

Result<std::optional<seeds::DelayTopics>> TakeoverOptions::kafka_source() const {
  if (kafka_.empty() && kafka_file_.empty()) {
    if (!kafka_group_.empty()) return invalid("--kafka-group: needs --kafka or --kafka-file");
    return std::optional<seeds::DelayTopics>();
  }
  if (from_ != seeds::kSystems[0])
    return invalid(fmt::format("--kafka: goes only with --from {}", seeds::kSystems[0]));
  std::string file;
  if (!kafka_file_.empty()) {
    std::ifstream in(kafka_file_, std::ios::binary);
    file.assign(std::istreambuf_iterator<char>(in), {});
    if (!in.good() && !in.eof()) return invalid(fmt::format("--kafka-file: {} cannot be read", kafka_file_));
  }
  auto found = seeds::delay_topics(kafka_, kafka_group_, file);
  if (!found) return found.error();
  if (Status status = seeds::find_group(*found); !status) return status.error();
  return std::optional(std::move(*found));
}

Status TakeoverOptions::check_stopped(const Session& session, const seeds::RedisReader& redis) const {
  if (from_ != seeds::kSystems[0]) return {};
  const auto claims = seeds::live_claims(redis);
  if (!claims) return claims.error();
  if (claims->empty()) return {};
  const std::string what = fmt::format(
      "a go-delay-queue with -t kafka runs on this Redis ({}): stop it first, or it hands over the "
      "same jobs. After a crash its claims end by themselves",
      fmt::join(*claims, ", "));
  if (yes_) return Error{ErrorCode::kConflict, {}, what};
  session.world.err << what << "\n";
  return {};
}

Status TakeoverOptions::run(const Session& session, const std::vector<std::string>& sources,
                            const std::optional<std::string>& data) const {
  if (sources.size() != 1)
    return invalid("URL: name the one Redis that has the jobs: redis://host:port/database");
  if (yes_ && dry_run_) return invalid("--yes and --dry-run: one of them");
  if (remove_ && !yes_) return invalid("--remove: needs --yes, after a look at what a dry run says");
  const Result<RedisPlace> redis = open_redis(sources.front());
  if (!redis) return redis.error();
  if (Status status = check_stopped(session, redis->reader); !status) return status;
  const auto kafka = kafka_source();
  if (!kafka) return kafka.error();
  uint64_t records = 0;
  const auto layout = seeds::layout_of(from_, {buckets_, bucket_name_},
                                       *kafka ? seeds::records_in(**kafka, records) : seeds::DelayRecords());
  if (layout == nullptr) return invalid("--from: not known");
  if (redis->is_member) {
    session.world.err << fmt::format(
        "{} is a member of a Cluster: only the jobs that it has itself are seen; name each master in turn\n",
        redis->name);
  }
  Result<AskAll> ask = AskAll();
  if (yes_) ask = ask_where(session, data, Surroundings::Access::kMake);
  if (!ask) return ask.error();
  const Result<uint64_t> total = layout->total(redis->reader);
  if (!total) return total.error();
  Status status;
  std::optional<Progress> progress(std::in_place, session.world, yes_ ? "taking over" : "reading", *total);
  Takeover takeover(redis->reader, yes_ ? &*ask : nullptr, session.world.now(), remove_,
                    [&progress](uint64_t jobs) { progress->show(jobs, jobs); });
  status = layout->read(redis->reader, takeover);
  if (status && yes_) status = takeover.send();
  progress.reset();
  const TakeoverReport& report = takeover.report();
  TakeoverReport::Heading heading{from_, redis->name, data ? *data : session.server_name, !yes_, remove_};
  if (*kafka) {
    heading.kafka = fmt::format("{}{}", (*kafka)->client.brokers,
                                (*kafka)->group.empty() ? ", from the first one: no group has read there"
                                                        : ", behind the offsets of group " + (*kafka)->group);
    heading.records = records;
  }
  session.say(report.text(heading), report.json(heading));
  if (!status) {
    Error error = status.error();
    if (yes_) error.detail += "; what was taken over stays, and the same command goes on from here";
    return error;
  }
  if (report.found() == 0) return check_empty(redis->reader);
  if (!yes_ || report.missed() == 0) return {};
  return Error{report.counts().failed() > 0 ? report.counts().first_error() : ErrorCode::kCorrupt,
               {},
               fmt::format("{} of {} jobs were not taken over", report.missed(), report.found())};
}

}  // namespace delayq::cli
