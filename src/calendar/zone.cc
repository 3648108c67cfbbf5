#include "calendar/zone.h"

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/limits.h"
#include "core/text.h"

namespace delayq {

namespace {

bool is_name_character(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '+' ||
         c == '-' || c == '/';
}

/// Whether the text can be a name of the database. There is no '.' and no ':', so it is no way out of
/// tzdata's folder, and none of the prefixes with a meaning for absl::LoadTimeZone ("file:", "libc:"). One
/// spelling for each file: with empty parts there would be any number of them, and every one would be kept.
bool is_zone_name(std::string_view name) {
  if (name.empty() || name.size() > Limits::kZoneBytes || name.front() == '/' || name.back() == '/')
    return false;
  if (name.find("//") != std::string_view::npos) return false;
  for (char c : name) {
    if (!is_name_character(c)) return false;
  }
  // Not names of the database: the copies of it, and what differs from system to system.
  return !name.starts_with("posix/") && !name.starts_with("right/") && name != "posixrules" &&
         name != "localtime";
}

/// The folder of tzdata; the same as absl looks in.
std::string zone_folder() {
  const char* folder = std::getenv("TZDIR");
  return folder == nullptr || *folder == '\0' ? "/usr/share/zoneinfo" : folder;
}

bool has_file(const std::string& name) {
  std::ifstream file(zone_folder() + "/" + name, std::ios::binary);
  char magic[4] = {};
  return file.read(magic, sizeof magic) && std::string_view(magic, sizeof magic) == "TZif";
}

/// The zones that were found, so that their files are looked for only once: a server that starts with 100,000
/// schedules asks for as many zones.
class FoundZones {
 public:
  std::optional<absl::TimeZone> find(std::string_view name) {
    const std::lock_guard lock(mutex_);
    const auto found = zones_.find(name);
    if (found != zones_.end()) return found->second;
    absl::TimeZone zone;
    std::string text(name);
    if (!is_zone_name(name) || !has_file(text) || !absl::LoadTimeZone(text, &zone)) return std::nullopt;
    zones_.emplace(std::move(text), zone);
    return zone;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, absl::TimeZone, std::less<>> zones_;
};

}  // namespace

Result<Zone> Zone::find(std::string_view name) {
  if (name == "UTC") return Zone();
  // Never destroyed: a thread may still ask while the program ends.
  static auto* const kZones = new FoundZones;
  const std::optional<absl::TimeZone> zone = kZones->find(name);
  if (!zone && is_zone_name(name) && !has_file("UTC")) {
    return invalid("zone", fmt::format("{} is not known, as no zone but UTC: there are no time zones in {}; "
                                       "install the package tzdata, and restart the server",
                                       quote(name), zone_folder()));
  }
  if (!zone) {
    return invalid("zone",
                   fmt::format(R"({} is not a time zone: use an IANA name such as "Europe/Berlin" or "UTC")",
                               quote(name)));
  }
  return Zone(*zone);
}

std::string local_time(Moment moment, const Zone& zone) {
  const auto second = std::chrono::floor<std::chrono::seconds>(moment);
  const int offset = zone.get().At(absl::FromUnixSeconds(second.time_since_epoch().count())).offset;
  const std::chrono::minutes minutes{offset / 60};  // towards zero
  const auto local = moment + minutes;
  const auto day = std::chrono::floor<std::chrono::days>(local);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss time{local - day};
  std::string text = fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", static_cast<int>(date.year()),
                                 static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                                 time.hours().count(), time.minutes().count(), time.seconds().count());
  if (time.subseconds().count() != 0) text += fmt::format(".{:03}", time.subseconds().count());
  const int size = std::abs(static_cast<int>(minutes.count()));
  return text + fmt::format("{}{:02}:{:02}", minutes.count() < 0 ? '-' : '+', size / 60, size % 60);
}

}  // namespace delayq
