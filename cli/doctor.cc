#include "cli/doctor.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include <fmt/format.h>

#include "cli/terminal.h"
#include "core/duration.h"
#include "core/moment.h"
#include "core/text.h"
#include "json/writer.h"

namespace delayq::cli {

namespace {

using Found = Finding::Result;

constexpr std::array<std::string_view, 4> kResultNames{"ok", "warning", "problem", "skipped"};
constexpr size_t kFindingText = 300;

std::string_view name_of_result(Found kind) { return kResultNames[static_cast<size_t>(kind)]; }

/// Lines of words, none wider than `width` unless a word is.
std::vector<std::string> wrapped(std::string_view text, size_t width) {
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    if (!lines.back().empty() && columns_of(lines.back()) + 1 + columns_of(word) > width)
      lines.emplace_back();
    if (!lines.back().empty()) lines.back() += ' ';
    lines.back() += word;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string counted(int64_t number, std::string_view what) {
  return fmt::format("{} {}{}", grouped(number), what, number == 1 ? "" : "s");
}

}  // namespace

std::string render_findings(const Findings& findings, size_t width) {
  constexpr size_t kBefore = 21;  // "warning  connections  "
  constexpr size_t kNarrow = 40;
  // On a very narrow terminal the text goes below.
  const bool is_narrow = width < kBefore + kNarrow;
  const std::string indent(is_narrow ? 2 : kBefore, ' ');
  const size_t room = std::max<size_t>(width, indent.size() + 10) - indent.size();
  std::string out;
  size_t problems = 0;
  size_t warnings = 0;
  for (const Finding& finding : findings) {
    problems += finding.result == Found::kProblem ? 1 : 0;
    warnings += finding.result == Found::kWarning ? 1 : 0;
    std::string head = fmt::format("{:<7}  {:<10}  ", name_of_result(finding.result), finding.about);
    if (is_narrow) head = fmt::format("{}  {}\n{}", name_of_result(finding.result), finding.about, indent);
    std::vector<std::string> lines = wrapped(finding.text, room);
    if (!finding.advice.empty()) {
      for (const std::string& line : wrapped("-> " + finding.advice, room)) lines.push_back(line);
    }
    for (size_t i = 0; i < lines.size(); ++i) out += (i == 0 ? head : indent) + lines[i] + "\n";
  }
  if (problems + warnings == 0) return out + "\nall is well\n";
  return out + fmt::format("\n{}, {}\n", counted(static_cast<int64_t>(problems), "problem"),
                           counted(static_cast<int64_t>(warnings), "warning"));
}

std::string findings_as_json(std::string_view server, const Findings& findings) {
  std::string out;
  json::Writer json(out);
  const bool is_bad = std::any_of(findings.begin(), findings.end(),
                                  [](const Finding& finding) { return finding.result == Found::kProblem; });
  json.begin_object().key("server").text(server).key("ok").boolean(!is_bad).key("checks").begin_array();
  for (const Finding& finding : findings) {
    json.begin_object().key("check").text(finding.about);
    json.key("result").text(name_of_result(finding.result)).key("text").text(finding.text);
    if (!finding.advice.empty()) json.key("advice").text(finding.advice);
    json.end_object();
  }
  json.end_array().end_object();
  return out;
}

namespace {

constexpr double kNear = 0.8;

/// "12 of 100", with the judgement of how near the bound is.
Finding of_bound(std::string about, int64_t used, int64_t most, const std::string& text, std::string advice) {
  const double part = most <= 0 ? 0 : static_cast<double>(used) / static_cast<double>(most);
  Finding finding{.about = std::move(about), .text = text};
  if (part < kNear) return finding;
  finding.result = part >= 1 ? Found::kProblem : Found::kWarning;
  finding.advice = std::move(advice);
  return finding;
}

Finding of_engine(const resp::Value& server) {
  const std::string engine = printable(field_text(server, "engine"), kFindingText);
  if (engine == "memory")
    return {"engine", Found::kWarning, "memory: all jobs are lost when the server stops",
            "server.engine = \"journal\" keeps them on disk"};
  if (engine != "journal")
    return {
        "engine", Found::kOk,
        fmt::format("{}: what a failure may lose is decided by how Redis is set up (appendonly)", engine)};
  if (field_text(server, "durability") != "interval")
    return {"engine", Found::kOk, "journal: every change is on disk before it is answered"};
  const Millis interval{number_of(server, "sync_interval_ms")};
  return {"engine", Found::kWarning,
          fmt::format("journal, durability = \"interval\": a power loss may lose the last {}",
                      format_duration(interval)),
          "journal.durability = \"commit\" answers only when a change is on disk"};
}

Finding of_clock(const Examined& examined) {
  constexpr Millis kNoticed = std::chrono::seconds{1};
  constexpr Millis kFar = std::chrono::minutes{1};
  const Moment middle = examined.asked + (examined.answered - examined.asked) / 2;
  const Moment theirs = from_unix_ms(number_of(examined.server, "now_ms"));
  const Millis off = theirs > middle ? theirs - middle : middle - theirs;
  // The answer may have been written at any moment in between.
  const Millis doubt = examined.answered - examined.asked;
  if (off <= std::max(kNoticed, doubt)) return {"clock", Found::kOk, "the server's clock and ours agree"};
  return {"clock", off >= kFar ? Found::kProblem : Found::kWarning,
          fmt::format("the server's clock is {} {} ours", format_duration(off),
                      theirs > middle ? "ahead of" : "behind"),
          "jobs fall due by the server's clock: let both machines keep time (NTP), or give delays instead of "
          "moments"};
}

Finding of_access(const Examined& examined, bool is_local) {
  const resp::Value& server = examined.server;
  if (number_of(server, "tokens") != 0) {
    std::string scopes;
    for (const std::string& scope : field_texts(server, "scopes"))
      scopes += (scopes.empty() ? "" : ", ") + scope;
    std::string topics;
    for (const std::string& topic : field_texts(server, "topics"))
      topics += (topics.empty() ? "" : ", ") + topic;
    return {"token", Found::kOk,
            printable(fmt::format("{}: {} on topics {}", field_text(server, "name"), scopes, topics),
                      kFindingText)};
  }
  const std::string at = printable(field_text(server, "resp"), kFindingText);
  const bool listens_locally =
      at.starts_with("127.") || at.starts_with("[::1]") || at.starts_with("localhost:");
  if (listens_locally || (at.empty() && is_local))
    return {"token", Found::kOk,
            "no tokens are needed; every program on the server's machine may do everything"};
  return {"token", Found::kWarning,
          fmt::format("no tokens are needed, and everybody who reaches {} may do everything", at),
          "delayq token new prints a token and the lines for the server's configuration"};
}

Finding of_tls(bool uses_tls, bool is_local) {
  if (uses_tls) return {"TLS", Found::kOk, "the connection is encrypted"};
  if (is_local) return {"TLS", Found::kOk, "not used; the connection stays on this machine"};
  return {"TLS", Found::kWarning, "the connection is not encrypted: bodies and tokens can be read on the way",
          "set tls.certificate and tls.key at the server, and use --tls or --ca"};
}

Finding of_readiness(const Examined& examined) {
  if (examined.ready) return {"pushes", Found::kOk, "a push is accepted now"};
  const Error& error = examined.ready.error();
  std::string advice = "see the server's log";
  if (error.code == ErrorCode::kDiskFull)
    advice = "free room on the server's disk, or purge jobs: delayq purge TOPIC";
  if (error.code == ErrorCode::kOverloaded)
    advice = "let consumers catch up, purge what is not needed, or raise the limit";
  if (error.code == ErrorCode::kStopping) advice = "the server is shutting down: try again when it is back";
  return {"pushes", Found::kProblem,
          fmt::format("a push is refused: {}", printable(error.detail, kFindingText)), advice};
}

void judge_room(const Examined& examined, Findings& findings) {
  constexpr int64_t kUnknown = int64_t{1} << 60;  // an engine whose disk is elsewhere
  const resp::Value none;
  const resp::Value* const found = examined.server.find("limits");
  const resp::Value& limits = found == nullptr ? none : *found;
  if (!examined.totals) {
    findings.push_back(
        {"room", Found::kSkipped, "disk, memory and dead jobs in all are only for tokens for all topics"});
  } else {
    const resp::Value& totals = *examined.totals;
    const int64_t free = number_of(totals, "disk_free");
    const int64_t reserve = number_of(limits, "disk_reserve_bytes");
    if (totals.find("disk_free") != nullptr && free < kUnknown &&
        field_text(examined.server, "engine") == "journal") {
      Finding disk{"disk", Found::kOk,
                   fmt::format("{} free, {} used by the journal", rough_size(free),
                               rough_size(number_of(totals, "disk_bytes")))};
      if (free < 4 * reserve) {
        disk.result = free <= reserve ? Found::kProblem : Found::kWarning;
        disk.advice =
            fmt::format("pushes are refused below {} (journal.disk_reserve): free room on that disk",
                        rough_size(reserve));
      }
      findings.push_back(std::move(disk));
    }
    const int64_t memory = number_of(totals, "memory_bytes");
    const int64_t most_memory = number_of(limits, "memory_bytes");
    findings.push_back(of_bound(
        "memory", memory, most_memory,
        most_memory == 0 ? fmt::format("{} for jobs; no limit is set (limits.memory)", rough_size(memory))
                         : fmt::format("{} of {} for jobs", rough_size(memory), rough_size(most_memory)),
        "pushes are refused at limits.memory: purge jobs, or raise it"));
    if (const int64_t most = number_of(limits, "jobs"); most > 0)
      findings.push_back(of_bound("jobs", number_of(totals, "jobs"), most,
                                  fmt::format("{} of {}", grouped(number_of(totals, "jobs")), grouped(most)),
                                  "pushes are refused at limits.jobs: purge jobs, or raise it"));
  }
  if (!examined.consumers) return;
  const int64_t connections = number_of(*examined.consumers, "connections");
  const int64_t most = number_of(limits, "connections");
  findings.push_back(
      of_bound("clients", connections, most,
               fmt::format("{} of {}", counted(connections, "connection"), grouped(most)),
               "at server.max_connections new clients are refused: close idle ones, or raise it"));
}

std::string names_of_first(const std::vector<const Examined::Topic*>& topics) {
  constexpr size_t kMost = 3;
  std::string names;
  for (size_t i = 0; i < std::min(kMost, topics.size()); ++i)
    names += (i > 0 ? ", " : "") + printable(topics[i]->name, kShownTopic);
  if (topics.size() > kMost) names += fmt::format(" and {} more", grouped_count(topics.size() - kMost));
  return names;
}

Finding of_dead(const Examined& examined) {
  std::vector<const Examined::Topic*> with_dead;
  int64_t dead = 0;
  for (const Examined::Topic& topic : examined.topics) {
    if (topic.dead <= 0) continue;  // below 0: what answers is not delayq
    with_dead.push_back(&topic);
    dead += topic.dead;
  }
  if (with_dead.empty()) return {"dead jobs", Found::kOk, "none"};
  std::stable_sort(with_dead.begin(), with_dead.end(),
                   [](const auto* a, const auto* b) { return a->dead > b->dead; });
  int64_t died = 0;
  if (examined.totals && examined.later)
    died = number_of(*examined.later, "died") - number_of(*examined.totals, "died");
  const std::string first = printable(with_dead.front()->name, kShownTopic);
  return {"dead jobs", Found::kWarning,
          fmt::format("{} in {}{}", grouped(dead), names_of_first(with_dead),
                      died > 0 ? fmt::format("; growing: {} died just now", grouped(died)) : ""),
          fmt::format("delayq dead {0} shows why; delayq redrive {0} tries them again", first)};
}

/// Ready jobs that nobody takes.
void judge_consumers(const Examined& examined, Findings& findings) {
  constexpr Millis kPatience = std::chrono::minutes{1};
  const Moment now = from_unix_ms(number_of(examined.server, "now_ms"));
  std::vector<const Examined::Topic*> paused;
  std::vector<const Examined::Topic*> left;
  std::optional<Millis> longest;
  for (const Examined::Topic& topic : examined.topics) {
    if (topic.is_paused && topic.ready > 0) paused.push_back(&topic);
    if (!topic.stats || topic.is_paused) continue;
    if (const std::string_view problem = field_text(*topic.stats, "delivery_problem"); !problem.empty()) {
      findings.push_back(
          {"delivery", Found::kProblem,
           fmt::format("topic {}: {}", printable(topic.name, kShownTopic), printable(problem, kFindingText)),
           "its ready jobs wait until that is mended"});
      continue;
    }
    const int64_t since = number_of(*topic.stats, "oldest_ready_ms");
    if (since == 0 || topic.reserved > 0 || number_of(*topic.stats, "waiters") > 0) continue;
    const Millis waits = now - from_unix_ms(since);
    if (waits < kPatience) continue;
    left.push_back(&topic);
    longest = std::max(longest.value_or(waits), waits);
  }
  if (!left.empty()) {
    findings.push_back(
        {"consumers", Found::kWarning,
         fmt::format("nobody takes the ready jobs of {}; the oldest waits since {}", names_of_first(left),
                     format_duration(std::chrono::floor<std::chrono::seconds>(*longest))),
         fmt::format("start a consumer: delayq bpop {}. Another server on the same Redis may have some",
                     printable(left.front()->name, kShownTopic))});
    if (field_text(examined.server, "engine") == "journal" ||
        field_text(examined.server, "engine") == "memory")
      findings.back().advice =
          fmt::format("start a consumer: delayq bpop {}", printable(left.front()->name, kShownTopic));
  } else {
    findings.push_back({"consumers", Found::kOk, "no topic has ready jobs that nobody takes"});
  }
  if (!paused.empty())
    findings.push_back({"paused", Found::kWarning,
                        fmt::format("{} has ready jobs and is paused", names_of_first(paused)),
                        fmt::format("delayq resume {}", printable(paused.front()->name, kShownTopic))});
  if (!examined.has_all_topics)
    findings.push_back(
        {"topics", Found::kSkipped,
         fmt::format("only the first {} topics were looked at", grouped_count(examined.topics.size()))});
}

}  // namespace

Findings judge(const Examined& examined, bool uses_tls, bool is_local) {
  Findings findings;
  findings.push_back(of_access(examined, is_local));
  findings.push_back(of_tls(uses_tls, is_local));
  findings.push_back(of_engine(examined.server));
  findings.push_back(of_clock(examined));
  findings.push_back(of_readiness(examined));
  judge_room(examined, findings);
  findings.push_back(of_dead(examined));
  judge_consumers(examined, findings);
  return findings;
}

Finding explain_unreachable(const Server& server, const Error& error, const Probe& probe) {
  const std::string name = to_string(server.address);
  Finding finding{"server", Found::kProblem, printable(error.detail, kFindingText)};
  // What follows is more exact than the advice of the error.
  const std::string there = finding.text.substr(0, finding.text.find(". "));
  const std::string resp_at = probe.resp_at.empty() ? "HOST:PORT" : printable(probe.resp_at, kFindingText);
  if (!probe.connects) {
    finding.text = there;
    finding.advice =
        probe.http_at.empty()
            ? "start a server: delayq serve; or name the one that runs with --server or $DELAYQ_RESP"
            : fmt::format("a delayq answers HTTP at {}; name its RESP address: --server {}", probe.http_at,
                          resp_at);
    return finding;
  }
  const std::string_view plain = probe.plain;
  if (plain.starts_with("HTTP/")) {
    finding.text = fmt::format("{} speaks HTTP, not RESP", name);
    finding.advice =
        probe.http_at.empty()
            ? fmt::format("it is not delayq's port for clients; name that one: --server {}", resp_at)
            : fmt::format("it is delayq's HTTP port; name the one for RESP: --server {}", resp_at);
  } else if (plain.starts_with("+PONG") || plain.starts_with("-NOAUTH")) {
    finding.text = server.tls ? fmt::format("{} speaks RESP without TLS", name) : there;
    finding.advice = server.tls ? "leave --tls, --ca, --cert and --insecure (and $DELAYQ_CA) away" : "";
  } else if (!plain.empty()) {
    finding.text = fmt::format("{} is something else: it says \"{}\"", name,
                               printable(plain.substr(0, plain.find('\r')), 60));
    finding.advice = "name the address of a delayq server: --server HOST:PORT";
  } else if (probe.speaks_tls && !server.tls) {
    finding.text = fmt::format("{} speaks TLS", name);
    finding.advice = "use --tls, or --ca FILE when its certificate is your own";
  } else if (probe.speaks_tls) {
    // Usually the error says what is wrong with the certificate, and what to do.
    if (error.detail.find("does not speak RESP") != std::string::npos)
      finding.advice = "is it the HTTP port? Name the one for RESP: --server HOST:PORT";
  } else {
    finding.text = fmt::format("{} takes connections but does not answer", name);
    finding.advice = "is it a delayq server? If it is, it hangs, or a firewall is in between: see its log";
  }
  return finding;
}

}  // namespace delayq::cli
