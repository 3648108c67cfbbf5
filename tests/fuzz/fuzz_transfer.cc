// Any line: refused with a reason that names its place, or a job (or settings, or a schedule) that is written
// and read back to the same.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "api/transfer/line.h"

namespace delayq {
namespace {

void require(bool condition) {
  if (!condition) __builtin_trap();
}

void compare(const Job& a, const Job& b) {
  require(a.topic == b.topic && a.id == b.id && a.group == b.group && a.body == b.body);
  require(a.outcome == b.outcome && a.state == b.state && a.priority == b.priority);
  require(a.attempts == b.attempts && a.due == b.due && a.pushed == b.pushed && a.until == b.until);
  require(a.cancel_requested == b.cancel_requested);
}

/// A schedule is written and read back to the same.
void check_schedule_line(const transfer::Line& line) {
  if (line.moving || line.schedule->topic.empty()) return;
  auto view = std::make_shared<ScheduleView>();
  view->spec = *line.schedule;
  if (line.progress) view->progress = *line.progress;
  ExportItem item;
  item.schedule = view;
  std::string written;
  transfer::write_line(written, item);
  require(written.find('\n') == written.size() - 1);
  // What the queue would refuse need not come back.
  if (!check_schedule(view->spec, from_unix_ms(1'700'000'000'000), Limits{}) ||
      !check_progress(view->progress))
    return;
  const Result<transfer::Line> again = transfer::parse_line(written);
  require(again.ok() && again->schedule && again->progress);
  require(*again->schedule == view->spec && *again->progress == view->progress);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const Result<transfer::Line> line = transfer::parse_line(text);
  if (!line.ok()) {
    require(!line.error().detail.empty());
    return 0;
  }
  if (line->schedule) {
    check_schedule_line(*line);
    return 0;
  }
  ExportItem item;
  item.job = line->item.job;
  item.job.topic = line->topic;
  item.settings = line->settings;
  std::string options;
  encode_job_options(line->item.options, options);
  item.job.options = options;
  // What the queue would refuse need not come back: it is never stored.
  const bool is_plain = line->settings ? check_settings(*line->settings).ok()
                                       : !item.job.id.empty() && check_job_options(line->item.options).ok();
  std::string written;
  transfer::write_line(written, item);
  require(written.find('\n') == written.size() - 1);
  if (!is_plain) return 0;
  const Result<transfer::Line> again = transfer::parse_line(written);
  require(again.ok());
  require(again->topic == line->topic && again->settings == line->settings);
  if (line->settings) return 0;
  compare(again->item.job, line->item.job);
  require(again->item.options == line->item.options);
  return 0;
}

}  // namespace delayq
