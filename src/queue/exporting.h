#pragma once

#include <memory>
#include <string>

#include "queue/context.h"
#include "queue/schedules.h"
#include "queue/topics.h"

namespace delayq {

/// Exports all jobs, settings and schedules in pages: see Queue::export_page.
class Exporting {
 public:
  Exporting(Context& context, const SettingsBook& settings, Schedules& schedules)
      : context_(context), settings_(settings), schedules_(schedules) {}

  void page(const ExportRequest& request, Reply<ExportPage> reply);

 private:
  /// The state of one page while it is filled.
  struct Walk;

  void schedules(std::unique_ptr<Walk> walk);
  void add_schedules(std::unique_ptr<Walk> walk, ScheduleViews page);
  void step(std::unique_ptr<Walk> walk);
  void next_topic(std::unique_ptr<Walk> walk, std::string after);
  void enter_topic(std::unique_ptr<Walk> walk, std::string topic);
  void add_settings(Walk& walk, std::string_view name) const;
  void add_jobs(std::unique_ptr<Walk> walk, JobPage page);
  void answer(Walk& walk, bool is_over);

  Context& context_;
  const SettingsBook& settings_;
  Schedules& schedules_;
};

}  // namespace delayq
