#include "core/occurrence.h"

#include <cassert>

#include "core/moment.h"

namespace delayq {

std::string occurrence_id(std::string_view name, Moment at) {
  constexpr std::string_view kZeroMillis = ".000Z";
  std::string time = format_moment(at);
  assert(!name.empty() && time.size() + 1 == kOccurrenceBytes);
  if (time.ends_with(kZeroMillis)) time.replace(time.size() - kZeroMillis.size(), kZeroMillis.size(), "Z");
  std::string id;
  id.reserve(name.size() + 1 + time.size());
  id.append(name).append(1, '@').append(time);
  return id;
}

bool is_occurrence_ending(std::string_view text) {
  // A digit stands for any digit, every other character for itself.
  constexpr std::string_view kSeconds = "@0000-00-00T00:00:00Z";
  constexpr std::string_view kMillis = "@0000-00-00T00:00:00.000Z";
  static_assert(kMillis.size() == kOccurrenceBytes && kSeconds.size() + 4 == kOccurrenceBytes);
  const std::string_view pattern = text.size() == kMillis.size() ? kMillis : kSeconds;
  if (text.size() != pattern.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool fits = pattern[i] == '0' ? text[i] >= '0' && text[i] <= '9' : text[i] == pattern[i];
    if (!fits) return false;
  }
  return true;
}

}  // namespace delayq
