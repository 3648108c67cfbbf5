// delay_queue_callback: `<topic>-<id>` is the job as JSON, `dqc_bucket_<n>` are zsets of those names by the
// second at which they are due.
#include <algorithm>

#include <fmt/format.h>

#include "cli/seeds/layout.h"
#include "cli/seeds/seed_job.h"
#include "core/limits.h"

namespace delayq::cli::seeds {

namespace {

constexpr uint32_t kTries = 3;  // its default

/// The body is any JSON value, as it was written.
Result<SeedJob> job_of(std::string_view text) {
  const Result<JsonJob> found = JsonJob::parse(text);
  if (!found) return found.error();
  SeedJob job;
  job.topic = found->text("topic");
  job.id = found->text("id");
  job.callback = found->text("callback");
  const json::Slice* const body = found->find("body");
  job.body = body == nullptr ? "null" : std::string(body->text);
  for (const auto& [name, value] :
       {std::pair{"topic", &job.topic}, {"id", &job.id}, {"callback", &job.callback}}) {
    if (value->empty()) return Error{ErrorCode::kCorrupt, {}, fmt::format("the job has no {}", name)};
  }
  constexpr int64_t kMost = std::chrono::duration_cast<std::chrono::seconds>(Limits::kMaxDelay).count();
  job.delay = std::chrono::seconds{std::clamp<int64_t>(found->number("delay").value_or(0), 0, kMost)};
  job.callback_method = "PUT";
  job.callback_format = "callback-api";
  job.max_attempts = kTries;
  return job;
}

class Callback final : public Layout {
 public:
  explicit Callback(const BucketOptions& buckets) : buckets_({"dqc_bucket_"}, 0, buckets) {}

  Result<uint64_t> total(const RedisReader& redis) const override { return buckets_.total(redis); }

  Status read(const RedisReader& redis, Sink& sink) const override {
    return buckets_.read(redis, [&](const std::string& bucket, const std::vector<RedisReader::Pair>& page) {
      return read_bucket(redis, bucket, page, sink);
    });
  }

 private:
  static Status read_bucket(const RedisReader& redis, const std::string& bucket,
                            const std::vector<RedisReader::Pair>& page, Sink& sink) {
    std::vector<std::string> signs;
    for (const auto& [sign, score] : page) signs.push_back(sign);
    const auto jobs = redis.get(signs);
    if (!jobs) return jobs.error();
    for (size_t i = 0; i < page.size(); ++i) {
      const std::string where = fmt::format("{} {}", bucket, signs[i]);
      const std::optional<Moment> due = moment_of_seconds(page[i].second);
      if (!(*jobs)[i]) {
        sink.gone();
        continue;
      }
      if (!due) {
        sink.unreadable(where, "its score is not a time");
        continue;
      }
      Result<SeedJob> job = job_of(*(*jobs)[i]);
      if (!job) {
        sink.unreadable(where, job.error().detail);
        continue;
      }
      job->due = *due;
      // Its receivers get the delay, from the push to the due time.
      if (job->delay > Millis::zero()) job->pushed = std::max(*due - job->delay, Moment{});
      job->removal = {{"ZREM", bucket, signs[i]}, {"DEL", signs[i]}};
      if (Status status = sink.job(std::move(*job)); !status) return status;
    }
    return {};
  }

  Buckets buckets_;
};

}  // namespace

std::unique_ptr<Layout> callback_layout(const BucketOptions& buckets) {
  return std::make_unique<Callback>(buckets);
}

}  // namespace delayq::cli::seeds
