#pragma once

#include <string>
#include <string_view>

#include <absl/time/time.h>

#include "core/result.h"
#include "core/time.h"

namespace delayq {

/// A time zone of the IANA database, as the system's tzdata has it. A value of one pointer; all zones stay in
/// memory once they were used, so a copy is valid for as long as the program runs. Any thread may use it.
///
/// What tzdata said when a zone was first used holds until the program ends: after an update of tzdata,
/// restart the server.
class Zone {
 public:
  /// UTC, which needs no tzdata.
  Zone() : zone_(absl::UTCTimeZone()) {}

  /// The zone of this name: "Europe/Berlin", "Asia/Shanghai", "UTC". Names are those of the database, in its
  /// spelling and case. Anything else is kInvalid with the field `zone`: paths, offsets such as "+01:00",
  /// "localtime" (it differs between servers), and the copies of the database below "posix/" and "right/".
  ///
  /// Reads the zone's file when the name is used for the first time. A name without a file is refused before
  /// the zones in memory are asked, so names made up by a client leave nothing behind. All zones together are
  /// about 10 MiB.
  static Result<Zone> find(std::string_view name);

  std::string name() const { return zone_.name(); }
  const absl::TimeZone& get() const { return zone_; }

  bool operator==(const Zone&) const = default;

 private:
  explicit Zone(absl::TimeZone zone) : zone_(zone) {}

  absl::TimeZone zone_;
};

/// RFC 3339 with the offset of that moment in the zone: "2026-11-16T10:00:00+01:00"; milliseconds only when
/// there are any. An offset with seconds (Africa/Monrovia before 1972) is cut to whole minutes, and the time
/// with it, so the text always names the same moment.
std::string local_time(Moment moment, const Zone& zone);

}  // namespace delayq
