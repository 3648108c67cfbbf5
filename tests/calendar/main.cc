// Prints occurrences, for tests that compare them with other implementations. Reads lines of four fields,
// separated by tabs:
//
//   RULE  ZONE  FROM  COUNT      the next COUNT occurrences of the cron rule after FROM; the last ones up to
//                                FROM, in falling order, when COUNT is negative
//
// FROM is anything that parse_moment() reads. Prints one line for each: Unix seconds, separated by spaces;
// with --local, RFC 3339 with the zone's offset. An error is printed as "error: " and its detail.
#include <charconv>
#include <iostream>
#include <string>
#include <string_view>

#include "calendar/recurrence.h"
#include "core/moment.h"

namespace {

std::string_view take_field(std::string_view& line) {
  const size_t end = line.find('\t');
  const std::string_view field = line.substr(0, end);
  line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
  return field;
}

delayq::Result<std::string> occurrences(std::string_view line, bool is_local) {
  const delayq::Result<delayq::CronRule> rule = delayq::CronRule::parse(take_field(line));
  if (!rule) return rule.error();
  const delayq::Result<delayq::Zone> zone = delayq::Zone::find(take_field(line));
  if (!zone) return zone.error();
  delayq::Result<delayq::Moment> from = delayq::parse_moment(take_field(line));
  if (!from) return from.error();
  const std::string_view number = take_field(line);
  int count = 0;
  std::from_chars(number.data(), number.data() + number.size(), count);
  const auto recurrence = delayq::Recurrence::cron(*rule, *zone);
  std::string out;
  for (int step = count < 0 ? -1 : 1; count != 0; count -= step) {
    const auto found = step > 0 ? recurrence.next_after(*from) : recurrence.last_until(*from);
    if (!found) break;
    if (!out.empty()) out += ' ';
    out += is_local ? delayq::local_time(*found, *zone) : std::to_string(delayq::to_unix_ms(*found) / 1'000);
    from = step > 0 ? *found : *found - delayq::Millis{1};
  }
  return out;
}

}  // namespace

int main(int count, char** arguments) {
  std::ios::sync_with_stdio(false);
  const bool is_local = count > 1 && std::string_view(arguments[1]) == "--local";
  for (std::string line; std::getline(std::cin, line);) {
    const delayq::Result<std::string> found = occurrences(line, is_local);
    std::cout << (found ? *found : "error: " + found.error().detail) << '\n';
  }
  return 0;
}
