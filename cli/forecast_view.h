#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/verb.h"
#include "core/time.h"

namespace delayq::cli {

/// What falls due in equal parts of a time.
struct ForecastView {
  std::string topic{};  ///< empty: all topics
  Moment from{};
  Moment to{};
  Millis resolution{};  ///< the edge of a part may be wrong by so much
  std::vector<int64_t> jobs{};
  std::vector<int64_t> scheduled{};  ///< occurrences of schedules to come
  bool has_all_scheduled = true;
};

/// A bar for each part: lines that are not wider than `width`. With `unicode`, bars are blocks; else they are
/// characters of ASCII.
std::vector<std::string> render_forecast(const ForecastView& view, size_t width, bool unicode);

/// Whether the terminal shows more than ASCII, as the locale in LC_ALL, LC_CTYPE or LANG says.
bool has_unicode(const std::function<const char*(const char*)>& variable);

}  // namespace delayq::cli
