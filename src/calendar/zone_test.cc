#include "calendar/zone.h"

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/moment.h"
#include "tests/support/evenly.h"

namespace delayq {
namespace {

std::string zone_error(std::string_view name) {
  const Result<Zone> zone = Zone::find(name);
  if (zone) return "accepted";
  EXPECT_EQ(zone.error().field, "zone");
  EXPECT_EQ(zone.error().code, ErrorCode::kInvalid);
  return zone.error().detail;
}

TEST(Zone, finds_names_of_the_database) {
  for (std::string_view name : {"UTC", "Europe/Berlin", "Asia/Shanghai", "America/Argentina/Buenos_Aires",
                                "America/Port-au-Prince", "Etc/GMT+12", "GMT", "EST5EDT"}) {
    const Result<Zone> zone = Zone::find(name);
    ASSERT_TRUE(zone) << name;
    EXPECT_EQ(zone->name(), name);
    EXPECT_EQ(*Zone::find(name), *zone);
  }
  EXPECT_EQ(Zone(), *Zone::find("UTC"));
  EXPECT_EQ(sizeof(Zone), sizeof(void*));
}

TEST(Zone, says_that_tzdata_is_missing) {
  const char* const before = std::getenv("TZDIR");
  const std::string folder = before == nullptr ? "" : before;
  ::setenv("TZDIR", "/nonexistent", 1);
  EXPECT_TRUE(Zone::find("UTC"));
  EXPECT_EQ(zone_error("Mars/Phobos"),
            R"("Mars/Phobos" is not known, as no zone but UTC: there are no time zones in /nonexistent; )"
            "install the package tzdata, and restart the server");
  EXPECT_EQ(zone_error("no zone"),
            R"("no zone" is not a time zone: use an IANA name such as "Europe/Berlin" or "UTC")");
  before == nullptr ? ::unsetenv("TZDIR") : ::setenv("TZDIR", folder.c_str(), 1);
}

TEST(Zone, refuses_everything_else) {
  EXPECT_EQ(zone_error("Mars/Olympus"),
            R"("Mars/Olympus" is not a time zone: use an IANA name such as "Europe/Berlin" or "UTC")");
  for (std::string_view name : {"",
                                "localtime",
                                "posixrules",
                                "posix/Europe/Berlin",
                                "right/Europe/Berlin",
                                "Europe",
                                "Europe/",
                                "Europe//Berlin",
                                "/Europe/Berlin",
                                "europe/berlin",
                                " UTC",
                                "UTC ",
                                "UTC0",
                                "+01:00",
                                "Fixed/UTC+01:00:00",
                                "file:Europe/Berlin",
                                "file:/usr/share/zoneinfo/Europe/Berlin",
                                "libc:localtime",
                                "libc:Europe/Berlin",
                                "../zoneinfo/Europe/Berlin",
                                "Europe/../Europe/Berlin",
                                "./Europe/Berlin",
                                "/etc/localtime",
                                "/usr/share/zoneinfo/UTC",
                                "zone.tab",
                                "leapseconds",
                                "tzdata.zi"}) {
    EXPECT_NE(zone_error(name), "accepted") << name;
  }
  EXPECT_NE(zone_error(std::string("Europe/Berlin\0", 14)), "accepted");
  EXPECT_NE(zone_error(std::string(1 << 20, 'A')), "accepted");
}

TEST(Zone, local_time_has_the_offset_of_its_moment) {
  const Zone berlin = *Zone::find("Europe/Berlin");
  EXPECT_EQ(local_time(*parse_moment("2026-11-16T09:00:00Z"), berlin), "2026-11-16T10:00:00+01:00");
  EXPECT_EQ(local_time(*parse_moment("2026-07-16T09:00:00.25Z"), berlin), "2026-07-16T11:00:00.250+02:00");
  EXPECT_EQ(local_time(Moment{}, *Zone::find("America/New_York")), "1969-12-31T19:00:00-05:00");
  EXPECT_EQ(local_time(Moment{}, Zone()), "1970-01-01T00:00:00+00:00");
  EXPECT_EQ(local_time(*parse_moment("2026-01-01T00:00:00Z"), *Zone::find("Asia/Kathmandu")),
            "2026-01-01T05:45:00+05:45");
  EXPECT_EQ(local_time(*parse_moment("2026-01-01T00:00:00Z"), *Zone::find("America/St_Johns")),
            "2025-12-31T20:30:00-03:30");
}

TEST(Zone, an_offset_with_seconds_is_cut_together_with_the_time) {
  // 44 minutes and 30 seconds behind UTC.
  const Zone monrovia = *Zone::find("Africa/Monrovia");
  EXPECT_EQ(local_time(*parse_moment("1971-06-01T12:00:00Z"), monrovia), "1971-06-01T11:16:00-00:44");
}

RC_GTEST_PROP(ZoneProperty, local_time_names_the_same_moment, ()) {
  const auto name = *rc::gen::element<std::string>("UTC", "Europe/Berlin", "Africa/Monrovia", "Pacific/Apia",
                                                   "Australia/Lord_Howe", "America/Sao_Paulo");
  const Moment moment = from_unix_ms(*evenly<int64_t>(86'400'000, 253'402'214'400'000));
  RC_ASSERT(*parse_moment(local_time(moment, *Zone::find(name))) == moment);
}

}  // namespace
}  // namespace delayq
