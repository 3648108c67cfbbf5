#include "cli/seeds/seed_job.h"

#include "core/moment.h"
#include "json/body.h"

namespace delayq::cli::seeds {

std::string line_of(const SeedJob& job, Moment now) {
  std::string line;
  json::Writer json(line);
  json.begin_object().key("topic").text(job.topic).key("id").text(job.id);
  json.key("state").text(job.due > now ? "delayed" : "ready");
  json.key("due_at").text(format_moment(job.due));
  json.key("pushed_at").text(format_moment(job.pushed.value_or(now)));
  json.key("attempts").number(uint64_t{job.attempts});
  json::write_body(json, job.body);
  if (job.max_attempts) json.key("max_attempts").number(uint64_t{*job.max_attempts});
  const auto say = [&json](std::string_view name, const std::string& value) {
    if (!value.empty()) json.key(name).text(value);
  };
  say("backoff", job.backoff);
  say("lease", job.lease);
  say("callback", job.callback);
  say("callback_method", job.callback_method);
  say("callback_format", job.callback_format);
  say("name", job.name);
  json.end_object();
  return line;
}

}  // namespace delayq::cli::seeds
