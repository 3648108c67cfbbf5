#include <array>
#include <vector>

#include <fmt/format.h>

#include "core/text.h"
#include "queue/settings.h"

namespace delayq {

namespace {

struct NamedSetting {
  std::string_view name;
  void (*unset)(Settings&);
};

#define DELAYQ_SETTING(member)                                    \
  NamedSetting {                                                  \
#member, [](Settings & settings) { settings.member.reset(); } \
  }

constexpr std::array kNamedSettings{
    DELAYQ_SETTING(attempts),         DELAYQ_SETTING(backoff),         DELAYQ_SETTING(lease),
    DELAYQ_SETTING(keep_done),        DELAYQ_SETTING(keep_dead),       DELAYQ_SETTING(rate),
    DELAYQ_SETTING(concurrency),      DELAYQ_SETTING(paused),          DELAYQ_SETTING(priority),
    DELAYQ_SETTING(delivery),         DELAYQ_SETTING(callback),        DELAYQ_SETTING(callback_method),
    DELAYQ_SETTING(callback_timeout), DELAYQ_SETTING(callback_format), DELAYQ_SETTING(callback_secrets),
    DELAYQ_SETTING(redis_key),        DELAYQ_SETTING(redis_content),   DELAYQ_SETTING(redis_maxlen),
};

#undef DELAYQ_SETTING

}  // namespace

Status unset_setting(Settings& settings, std::string_view name) {
  std::vector<std::string_view> names;
  for (const NamedSetting& setting : kNamedSettings) {
    if (setting.name == name) {
      setting.unset(settings);
      return {};
    }
    names.push_back(setting.name);
  }
  const std::string_view meant = nearest(name, names);
  return invalid(fmt::format("{} is not a setting of a topic{}", quote(name),
                             meant.empty() ? "" : fmt::format("; did you mean {}?", meant)));
}

}  // namespace delayq
