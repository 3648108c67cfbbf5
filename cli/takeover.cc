#include "cli/takeover.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/importing.h"
#include "cli/progress.h"
#include "cli/redis_connection.h"
#include "cli/seeds/layout.h"
#include "cli/takeover_report.h"
#include "core/limits.h"

namespace delayq::cli {

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

  /// Adds to `here` those of which what has their id here is this job, from a run before, and not another.
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
             systems + ". Only says what it would do, unless --yes is given")
      ->check(CLI::IsMember(std::vector<std::string>(seeds::kSystems.begin(), seeds::kSystems.end())))
      ->type_name("SYSTEM");
  app.add_flag("--yes", yes_, "With --from: do it");
  app.add_flag("--dry-run", dry_run_, "With --from: do not do it, which is the default");
  app.add_flag("--remove", remove_, "With --from and --yes: remove jobs there once they are durable here");
  app.add_option("--buckets", buckets_,
                 "With --from: how many delay buckets there are; all that are found when left out")
      ->check(CLI::Range(1, 100'000));
  app.add_option("--bucket-name", bucket_name_,
                 "With --from: what the delay buckets are called when that was configured, as my_bucket_%d");
}

Status TakeoverOptions::check_unwanted() const {
  const std::pair<bool, std::string_view> said[] = {{dry_run_, "--dry-run"},
                                                    {yes_, "--yes"},
                                                    {remove_, "--remove"},
                                                    {buckets_ != 0, "--buckets"},
                                                    {!bucket_name_.empty(), "--bucket-name"}};
  for (const auto& [is_said, option] : said) {
    if (is_said) return invalid(fmt::format("{}: goes only with --from; a FILE is imported at once", option));
  }
  return {};
}

/// Nothing waits there, which is a success only where nothing looks as if it did.
Status TakeoverOptions::check_empty(const seeds::RedisReader& redis) const {
  const Result<std::vector<std::string>> found = seeds::look_alikes(redis);
  if (!found) return found.error();
  if (found->empty()) return {};
  return Error{ErrorCode::kNotFound,
               {},
               fmt::format("no job of {} waits there, but there are keys that look like jobs: {}", from_,
                           fmt::join(*found, "; "))};
}

Status TakeoverOptions::run(const Session& session, const std::vector<std::string>& sources,
                            const std::optional<std::string>& data) const {
  if (sources.size() != 1)
    return invalid("URL: name the one Redis that has the jobs: redis://host:port/database");
  if (yes_ && dry_run_) return invalid("--yes and --dry-run: one of them");
  if (remove_ && !yes_) return invalid("--remove: needs --yes, after a look at what a dry run says");
  const auto layout = seeds::layout_of(from_, {buckets_, bucket_name_});
  if (layout == nullptr) return invalid("--from: not known");
  const Result<RedisPlace> redis = open_redis(sources.front());
  if (!redis) return redis.error();
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
  const TakeoverReport::Heading heading{from_, redis->name, data ? *data : session.server_name, !yes_,
                                        remove_};
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
