#pragma once

#include "queue/admission.h"
#include "queue/hand_over.h"
#include "queue/settings_book.h"

namespace delayq {

/// Looking around: changes nothing.
class Overview {
 public:
  Overview(Context& context, const Admission& admission, const HandOver& hand_over,
           const SettingsBook& settings)
      : context_(context), admission_(admission), hand_over_(hand_over), settings_(settings) {}

  void list(const ListRequest& request, Reply<JobPage> reply);
  void topics(std::string_view cursor, uint32_t limit, Reply<TopicSummaries> reply);
  void stats(std::string_view topic, Reply<TopicStats> reply);
  void totals(Reply<TotalStats> reply);
  void forecast(const ForecastRequest& request, Reply<Forecast> reply);

 private:
  TopicSummaries with_settings(TopicPage page, std::string_view cursor, uint32_t limit) const;

  Context& context_;
  const Admission& admission_;
  const HandOver& hand_over_;
  const SettingsBook& settings_;
};

}  // namespace delayq
