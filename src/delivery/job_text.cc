#include "delivery/job_text.h"

#include "core/moment.h"
#include "json/writer.h"
#include "queue/job_options.h"

namespace delayq::delivery {

std::string job_text(const Job& job) {
  std::string text;
  text.reserve(job.body.size() + 256);
  json::Writer json(text);
  json.begin_object().key("topic").text(job.topic).key("id").text(job.id);
  json::write_body(json, job.body);
  json.key("attempt").number(uint64_t{job.attempts});
  json.key("due_at").text(format_moment(job.due)).key("pushed_at").text(format_moment(job.pushed));
  json.key("priority").number(uint64_t{job.priority});
  if (!job.group.empty()) json.key("group").text(job.group);
  const JobOptions options = decode_job_options(job.options);
  if (!options.name.empty()) json.key("name").text(options.name);
  if (!options.content_type.empty()) json.key("content_type").text(options.content_type);
  json.end_object();
  return text;
}

}  // namespace delayq::delivery
