#include "cli/listen_view.h"

#include <strings.h>

#include <fmt/format.h>

#include "cli/human.h"
#include "core/ascii.h"
#include "core/moment.h"
#include "json/writer.h"

namespace delayq::cli {

namespace {

constexpr std::string_view kOurHeaders = "delayq-";
constexpr size_t kShownBody = 200;
constexpr size_t kShownText = 300;

bool is_ours(std::string_view name) {
  return name.size() > kOurHeaders.size() &&
         ::strncasecmp(name.data(), kOurHeaders.data(), kOurHeaders.size()) == 0;
}

}  // namespace

std::string call_for_people(const ReceivedRequest& request, signing::Verdict verdict, Moment now) {
  const std::string time = format_moment(now);  // 2030-01-31T08:00:00.000Z
  std::string line = fmt::format("{} {} {}", time.substr(time.find('T') + 1, 12),
                                 printable(request.method, 20), printable(request.target, kShownText));
  std::string about;
  for (const auto& [name, value] : request.headers) {
    if (!is_ours(name)) continue;
    about += fmt::format(" {}={}", printable(lowered(name.substr(kOurHeaders.size())), 40),
                         printable(value, kShownText));
  }
  if (!about.empty()) line += " " + about;
  line += fmt::format("  {}", signing::name_of(verdict));
  if (!request.body.empty()) line += "  " + printable(request.body, kShownBody);
  return line;
}

std::string call_for_programs(const ReceivedRequest& request, signing::Verdict verdict, Moment now) {
  std::string line;
  json::Writer json(line);
  json.begin_object();
  json.key("at").text(format_moment(now));
  json.key("method").text(request.method);
  json.key("path").text(request.target);
  json.key("verdict").text(signing::name_of(verdict));
  json.key("headers").begin_object();
  for (const auto& [name, value] : request.headers) json.key(lowered(name)).text(value);
  json.end_object();
  json.bytes("body", request.body);
  json.end_object();
  return line;
}

}  // namespace delayq::cli
