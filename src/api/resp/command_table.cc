#include "api/resp/command_table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/duration.h"
#include "core/error.h"
#include "core/moment.h"
#include "core/text.h"

namespace delayq::resp {

namespace {

/// Puts the field's name before the message of its parser.
template <class T>
Result<T> named(std::string_view field, Result<T> parsed) {
  if (parsed.ok()) return parsed;
  Error error = parsed.error();
  error.detail = fmt::format("{}: {}", field, error.detail);
  error.field = field;
  return error;
}

}  // namespace

bool same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return to_lower(x) == to_lower(y); });
}

Result<std::string_view> Arguments::text(std::string_view field) {
  if (left_.empty()) return invalid(field, fmt::format("{}: a value is missing behind it", field));
  return take();
}

Result<Millis> Arguments::duration(std::string_view field) {
  const Result<std::string_view> value = text(field);
  if (!value.ok()) return value.error();
  return named(field, parse_duration(*value));
}

Result<Moment> Arguments::moment(std::string_view field) {
  const Result<std::string_view> value = text(field);
  if (!value.ok()) return value.error();
  return named(field, parse_moment(*value));
}

Result<Backoff> Arguments::backoff(std::string_view field) {
  const Result<std::string_view> value = text(field);
  if (!value.ok()) return value.error();
  return named(field, parse_backoff(*value));
}

Result<uint64_t> Arguments::number(std::string_view field) {
  const Result<std::string_view> value = text(field);
  if (!value.ok()) return value.error();
  uint64_t number = 0;
  const char* const end = value->data() + value->size();
  const auto [stop, problem] = std::from_chars(value->data(), end, number);
  if (problem != std::errc{} || stop != end || value->empty())
    return invalid(field, fmt::format("{}: {} is not a whole number", field, quote(*value)));
  return number;
}

Result<uint32_t> Arguments::small_number(std::string_view field) {
  const Result<uint64_t> value = number(field);
  if (!value.ok()) return value.error();
  constexpr uint64_t kMost = std::numeric_limits<uint32_t>::max();
  if (*value > kMost) return invalid(field, fmt::format("{}: {} is above {}", field, *value, kMost));
  return static_cast<uint32_t>(*value);
}

Result<JobState> Arguments::state(std::string_view field) {
  const Result<std::string_view> value = text(field);
  if (!value.ok()) return value.error();
  for (size_t i = 0; i < kJobStateCount; ++i) {
    if (same_word(*value, kJobStateNames[i])) return static_cast<JobState>(i);
  }
  return invalid(field,
                 fmt::format("{}: {} is none of {}", field, quote(*value), fmt::join(kJobStateNames, ", ")));
}

Error Arguments::unexpected(std::string_view usage) const {
  return invalid(fmt::format("{} is not understood here; usage: {}", quote(left_.front()), usage));
}

namespace {

constexpr Scopes kPushing = only(Scope::kPush);
constexpr Scopes kConsuming = only(Scope::kConsume);
constexpr Scopes kReading = only(Scope::kRead);
constexpr Scopes kOperating = only(Scope::kAdmin);
constexpr Scopes kScheduling = only(Scope::kSchedule);
constexpr Scopes kSeeingSchedules = Scope::kRead | Scope::kSchedule;
constexpr Scopes kAny = kAnyScope;

constexpr std::array kCommands{
    CommandSpec{
        Verb::kPush, "PUSH", 3, kAnyNumber, true, kPushing, Topics::kFirst,
        "PUSH topic delay body [ID id] [AT moment] [PRI n] [ATTEMPTS n] [BACKOFF spec] [LEASE duration] "
        "[GROUP group] [CALLBACK url] [METHOD method] [FORMAT format] [CALLBACKHEADER name value ...] "
        "[HEADER name value ...] [REPLACE|KEEP] [UNIQUE] [FIELDS]",
        "Stores a job that falls due after the delay. Returns its id; with FIELDS a map: result (created, "
        "replaced or kept), id, state, due_ms."},
    CommandSpec{
        Verb::kPop, "POP", 1, kAnyNumber, true, kConsuming, Topics::kNone,
        "POP topic [topic ...] [COUNT n] [WAIT duration] [LEASE duration] [AUTOACK] [HEADERS] [FIELDS]",
        "Takes jobs that are due: [lease, topic, id, body, attempt, due_ms] each; with HEADERS "
        "also a map of the job's headers. With FIELDS, which must follow another option, each job is "
        "a map."},
    CommandSpec{Verb::kAck, "ACK", 1, kAnyNumber, true, kConsuming, Topics::kLeases, "ACK lease [lease ...]",
                "Marks these jobs as done. Returns how many of the leases were current."},
    CommandSpec{Verb::kNack, "NACK", 1, kAnyNumber, true, kConsuming, Topics::kFirstLease,
                "NACK lease [DELAY duration] [REASON text] [DEAD] [FIELDS]",
                "The attempt failed: the job is retried by the topic's policy or after the delay, or is "
                "dead. Returns "
                "OK; with FIELDS a map: result (retried, dead or cancelled), and retry_ms if it is retried."},
    CommandSpec{
        Verb::kRelease, "RELEASE", 1, kAnyNumber, true, kConsuming, Topics::kLeases,
        "RELEASE lease [lease ...]",
        "Gives these jobs back, which were not begun: they are ready again at once, and the attempt is "
        "not counted. Returns how many of the leases were current."},
    CommandSpec{Verb::kExtend, "EXTEND", 1, 2, true, kConsuming, Topics::kFirstLease,
                "EXTEND lease [duration]",
                "Sets a new deadline of a reserved job: this long from now, which may be earlier than "
                "before. Without a duration it is the topic's lease from now, but never earlier than before. "
                "Returns it in Unix milliseconds."},
    CommandSpec{Verb::kGet, "GET", 1, 2, false, kAny, Topics::kFirstOfTwo, "GET topic id | GET id",
                "Returns a job. By its id alone: only a delayed, ready or reserved one; CONFLICT if several "
                "topics have one."},
    CommandSpec{Verb::kCancel, "CANCEL", 1, 2, true, kPushing, Topics::kFirstOfTwo,
                "CANCEL topic id | CANCEL id",
                "Cancels a job. Returns cancelled, reserved, done, dead or unknown."},
    CommandSpec{Verb::kCancelGroup, "CANCELGROUP", 1, 2, true, kPushing, Topics::kNone,
                "CANCELGROUP group [FIELDS]",
                "Cancels all waiting jobs of a group; running ones will not be retried. Returns the number "
                "of both together; with FIELDS a map: cancelled, reserved. With a token for some topics only "
                "the jobs of these topics are affected."},
    CommandSpec{Verb::kReschedule, "RESCHEDULE", 3, 4, true, kPushing, Topics::kFirst,
                "RESCHEDULE topic id delay | RESCHEDULE topic id AT moment", "Moves a job to another time."},
    CommandSpec{
        Verb::kRedrive, "REDRIVE", 1, kAnyNumber, true, kOperating, Topics::kFirst,
        "REDRIVE topic [[ID] id ...] | REDRIVE topic ERROR text",
        "Makes dead jobs ready again: all, those with these ids, or those whose error contains the text. "
        "Returns how many. An id that is also a keyword (ERROR, COUNT, PREFIX) needs ID before it."},
    CommandSpec{Verb::kPurge, "PURGE", 1, 2, true, kOperating, Topics::kFirst,
                "PURGE topic [delayed|ready|reserved|done|dead]",
                "Removes a topic's jobs. Returns how many."},
    CommandSpec{Verb::kPause, "PAUSE", 1, 1, true, kOperating, Topics::kFirst, "PAUSE topic",
                "Stops the hand-over of a topic; jobs can still be pushed."},
    CommandSpec{Verb::kResume, "RESUME", 1, 1, true, kOperating, Topics::kFirst, "RESUME topic",
                "Resumes the hand-over."},
    CommandSpec{Verb::kUnset, "UNSET", 1, kAnyNumber, true, kOperating, Topics::kFirst,
                "UNSET topic [setting ...]",
                "Removes these settings of a topic, or all of them, so that the defaults apply again. The "
                "topic * has the defaults themselves."},
    CommandSpec{
        Verb::kForget, "FORGET", 1, 2, true, kOperating, Topics::kFirst, "FORGET topic [FIELDS]",
        "Removes the settings and figures of a topic that has no jobs. With FIELDS: whether it existed."},
    CommandSpec{
        Verb::kTopics, "TOPICS", 0, 3, false, kAny, Topics::kNone, "TOPICS [cursor [count [FIELDS]]]",
        "A page of topics: [next cursor, [[name, delayed, ready, reserved, done, dead, paused] ...]]; with "
        "FIELDS each topic is a map with all its figures."},
    CommandSpec{Verb::kStats, "STATS", 0, 1, false, kAny, Topics::kFirstIfAny, "STATS [topic]",
                "Counts, rates and lateness."},
    CommandSpec{
        Verb::kList, "LIST", 2, kAnyNumber, false, kReading, Topics::kFirst,
        "LIST topic state [PREFIX id] [ERROR text] [DUEAFTER moment] [DUEBEFORE moment] [COUNT n] "
        "[CURSOR cursor]",
        "A page of jobs in a state: [next cursor, [job ...]]. The ids start with id, the outcomes contain "
        "text; due at DUEAFTER or later, and before DUEBEFORE."},
    CommandSpec{
        Verb::kForecast, "FORECAST", 0, 8, false, kReading, Topics::kNone,
        "FORECAST [TOPIC topic] [FROM moment] [TO moment] [BINS n]",
        "How many stored jobs, and how many occurrences of schedules, fall due in each of n equal parts "
        "of a time; default 24 parts of the next 24 hours. Of all topics only with a token for all."},
    CommandSpec{Verb::kConsumers, "CONSUMERS", 0, 2, false, kReading, Topics::kAll, "CONSUMERS [COUNT n]",
                "How many clients are connected, and the pops that wait for a job, those that have waited "
                "longest first; default 100, at most 1000."},
    CommandSpec{
        Verb::kNews, "NEWS", 1, kAnyNumber, false, kReading, Topics::kNone,
        "NEWS START [OF news[,news ...]] [STATE state[,state ...]] [TOPIC topic] [GROUP group] [AFTER "
        "cursor] "
        "| NEWS STOP",
        "News of single jobs as push messages, on a connection with HELLO 3. START returns a cursor."},
    CommandSpec{Verb::kExport, "EXPORT", 0, 8, false, kOperating, Topics::kAll,
                "EXPORT [TOPIC topic] [STATE state] [COUNT n] [CURSOR cursor]",
                "A page of all jobs and settings, in the format of IMPORT: [next cursor, [line ...]]."},
    CommandSpec{
        Verb::kImport, "IMPORT", 1, kAnyNumber, true, kOperating, Topics::kAll,
        "IMPORT [REPLACE|KEEP] line [line ...]",
        "Stores jobs and settings as they were. Returns created, replaced, kept or dropped for each, or "
        "an error."},
    CommandSpec{Verb::kBackup, "BACKUP", 1, 1, true, kOperating, Topics::kAll, "BACKUP name",
                "Copies the data as of one moment while the server runs: path, bytes, files, jobs."},
    CommandSpec{Verb::kSettings, "SETTINGS", 1, kAnyNumber, true, kAny, Topics::kNone,
                "SETTINGS GET|SET|UNSET ...", "The settings of topics."},
    CommandSpec{Verb::kSchedule, "SCHEDULE", 1, kAnyNumber, true, kSeeingSchedules, Topics::kNone,
                "SCHEDULE SET|GET|LIST|DEL|PAUSE|RESUME|RUN|NEXT ...", "Recurring jobs."},
    CommandSpec{Verb::kMulti, "MULTI", 0, 0, false, kAny, Topics::kNone, "MULTI",
                "Collects the commands that follow until EXEC."},
    CommandSpec{Verb::kExec, "EXEC", 0, 0, true, kAny, Topics::kNone, "EXEC",
                "Executes the commands since MULTI, in their order. Returns an array of their replies."},
    CommandSpec{Verb::kDiscard, "DISCARD", 0, 0, false, kAny, Topics::kNone, "DISCARD",
                "Drops the commands since MULTI."},
    CommandSpec{Verb::kPing, "PING", 0, 1, false, kAny, Topics::kNone, "PING [text]", "PONG, or the text."},
    CommandSpec{Verb::kEcho, "ECHO", 1, 1, false, kAny, Topics::kNone, "ECHO text", "The text."},
    CommandSpec{Verb::kAuth, "AUTH", 1, 2, false, kForEverybody, Topics::kNone, "AUTH [name] token",
                "Authenticates. A name other than default must be the token's."},
    CommandSpec{Verb::kHello, "HELLO", 0, kAnyNumber, false, kForEverybody, Topics::kNone,
                "HELLO [2|3 [AUTH name token] [SETNAME name]]", "Chooses the protocol's version."},
    CommandSpec{Verb::kInfo, "INFO", 0, kAnyNumber, false, kAny, Topics::kNone, "INFO [section ...]",
                "About this server."},
    CommandSpec{Verb::kServer, "SERVER", 0, 0, false, kAny, Topics::kNone, "SERVER",
                "The server's engine, clock, addresses and limits, and what the caller may do."},
    CommandSpec{Verb::kReady, "READY", 0, 0, false, kAny, Topics::kNone, "READY",
                "OK if a small push would be accepted now, else its error."},
    CommandSpec{Verb::kCommand, "COMMAND", 0, kAnyNumber, false, kAny, Topics::kNone,
                "COMMAND [COUNT|LIST|INFO|DOCS [name ...]]", "About these commands."},
    CommandSpec{Verb::kClient, "CLIENT", 1, kAnyNumber, false, kAny, Topics::kNone,
                "CLIENT SETNAME name | GETNAME | ID | SETINFO name value", "About this connection."},
    CommandSpec{Verb::kConfig, "CONFIG", 1, kAnyNumber, false, kAny, Topics::kNone, "CONFIG GET name ...",
                "Always empty: the configuration cannot be read over this protocol."},
    CommandSpec{Verb::kSelect, "SELECT", 1, 1, false, kAny, Topics::kNone, "SELECT 0",
                "There is one database."},
    CommandSpec{Verb::kReset, "RESET", 0, 0, false, kForEverybody, Topics::kNone, "RESET",
                "Resets the connection to its initial state."},
    CommandSpec{Verb::kQuit, "QUIT", 0, 0, false, kForEverybody, Topics::kNone, "QUIT",
                "Closes the connection."},
};

constexpr std::array kLongerCommands{
    CommandSpec{Verb::kSettingsGet, "SETTINGS GET", 1, kAnyNumber, false, kAny, Topics::kFirst,
                "SETTINGS GET topic [OWN] [setting ...]",
                "Returns these settings of a topic, or all of them, as a map: those in force, with OWN only "
                "those that the topic itself has. The topic * has the defaults. Of secrets only the number "
                "is shown."},
    CommandSpec{Verb::kSettingsSet, "SETTINGS SET", 3, kAnyNumber, true, kOperating, Topics::kFirst,
                "SETTINGS SET topic setting value [setting value ...]",
                "Changes these settings of a topic, all or none. The topic * has the defaults."},
    CommandSpec{Verb::kSettingsUnset, "SETTINGS UNSET", 1, kAnyNumber, true, kOperating, Topics::kFirst,
                "SETTINGS UNSET topic [setting ...]", "The same as UNSET."},
    CommandSpec{
        Verb::kScheduleSet, "SCHEDULE SET", 1, kAnyNumber, true, kScheduling, Topics::kOption,
        "SCHEDULE SET name (CRON rule [ZONE zone] | EVERY duration) TOPIC topic BODY body [START moment] "
        "[END moment] [RUNS n] [JITTER duration] [OVERLAP allow|skip|replace] [MISSED one|skip|all] [PRI n] "
        "[ATTEMPTS n] [BACKOFF spec] [LEASE duration] [GROUP group] [CALLBACK url] [METHOD method] "
        "[FORMAT format] [CALLBACKHEADER name value ...] [HEADER name value ...]",
        "Creates a schedule, or replaces the definition of the one with this name. It makes a job at each "
        "occurrence of its rule. Returns the schedule, and `result`: created, updated or unchanged."},
    CommandSpec{Verb::kScheduleGet, "SCHEDULE GET", 1, 1, false, kSeeingSchedules, Topics::kNone,
                "SCHEDULE GET name", "Returns a schedule, or null if there is none of that name."},
    CommandSpec{Verb::kScheduleList, "SCHEDULE LIST", 0, 4, false, kSeeingSchedules, Topics::kNone,
                "SCHEDULE LIST [AFTER name] [COUNT n]",
                "A page of schedules in the order of their names, without bodies: [name for the next AFTER, "
                "[schedule ...]]. The name is empty on the last page."},
    CommandSpec{Verb::kScheduleDel, "SCHEDULE DEL", 1, 1, true, kScheduling, Topics::kNone,
                "SCHEDULE DEL name", "Removes a schedule. The jobs that it has made stay."},
    CommandSpec{Verb::kSchedulePause, "SCHEDULE PAUSE", 1, 1, true, kScheduling, Topics::kNone,
                "SCHEDULE PAUSE name", "Stops the occurrences until it is resumed. Returns the schedule."},
    CommandSpec{Verb::kScheduleResume, "SCHEDULE RESUME", 1, 1, true, kScheduling, Topics::kNone,
                "SCHEDULE RESUME name",
                "Ends the pause. The occurrences that were missed are treated as MISSED says. Returns the "
                "schedule."},
    CommandSpec{Verb::kScheduleRun, "SCHEDULE RUN", 1, 1, true, kScheduling, Topics::kNone,
                "SCHEDULE RUN name",
                "Makes a job now, in addition to the occurrences. Returns its topic, id, state and due_ms."},
    CommandSpec{
        Verb::kScheduleNext, "SCHEDULE NEXT", 1, kAnyNumber, false, kSeeingSchedules, Topics::kNone,
        "SCHEDULE NEXT [NAME] name [COUNT n] | SCHEDULE NEXT (CRON rule [ZONE zone] | EVERY duration) "
        "[START moment] [END moment] [RUNS n] [FROM moment] [COUNT n]",
        "The next occurrences of a schedule, or of a rule that is not stored: [Unix milliseconds, local "
        "time] each; default 5, at most 1000. A name that is also a keyword (CRON, EVERY) needs NAME "
        "before it."},
};

constexpr size_t kLongestName = 16;

constexpr size_t longest_name() {
  size_t longest = 0;
  for (const CommandSpec& spec : kCommands) longest = spec.name.size() > longest ? spec.name.size() : longest;
  return longest;
}
static_assert(longest_name() <= kLongestName);

/// Whether a command of two words begins with that one.
bool is_within(const CommandSpec& spec, const CommandSpec& group) {
  return spec.name.substr(0, spec.name.find(' ')) == group.name;
}

}  // namespace

std::span<const CommandSpec> all_commands() { return kCommands; }

std::span<const CommandSpec> longer_commands() { return kLongerCommands; }

const CommandSpec* find_command(std::span<const std::string_view> words) {
  if (words.empty()) return nullptr;
  const CommandSpec* const first = find_command(words[0]);
  if (first == nullptr || !is_group(first->verb) || words.size() < 2) return first;
  const auto* const second =
      std::find_if(kLongerCommands.begin(), kLongerCommands.end(), [&](const CommandSpec& spec) {
        return is_within(spec, *first) && same_word(spec.name.substr(first->name.size() + 1), words[1]);
      });
  return second == kLongerCommands.end() ? first : second;
}

const CommandSpec* find_command(std::string_view name) {
  if (name.size() > kLongestName) return nullptr;
  std::array<char, kLongestName> capitals;
  for (size_t i = 0; i < name.size(); ++i) {
    capitals[i] = name[i] >= 'a' && name[i] <= 'z' ? static_cast<char>(name[i] - 'a' + 'A') : name[i];
  }
  // The table begins with the commands that are used most, so this is quicker than a hash of the name.
  for (const CommandSpec& spec : kCommands) {
    if (spec.name.size() == name.size() && std::memcmp(spec.name.data(), capitals.data(), name.size()) == 0)
      return &spec;
  }
  return nullptr;
}

// ---- the reference page

namespace {

constexpr std::string_view kHead = R"(# RESP
[Any Redis client](../guide/redis-clients.md) works: `redis-cli -p 9278 PUSH order 30m '{"uid":1}' ID order:1`. The protocol is RESP2, or RESP3 after `HELLO 3`.
This page is generated by `api/resp/command_table.cc` from the command table and the error table, and a test compares them.

- **Pipelining** is the fast way: commands of one kind that arrive together become one batch with one commit. Replies come in the
  order of the commands. A reply to a command that changes something means that the change is on disk (`durability = "commit"`).
  Only a `POP` without `AUTOACK` does not wait for the disk: after a crash its jobs may be ready again.
- **Order.** Commands of one connection take effect in their order. A `POP` with `WAIT` delays the commands after it on its own
  connection, and on no other. So does, until it has taken effect, a command of several steps: `PURGE`, `REDRIVE`, `CANCELGROUP`,
  `EXPORT`, `TOPICS`, `STATS`, the changes of `SCHEDULE`, a `POP` of several topics, `GET` and `CANCEL` by id alone.
- **Read timeouts.** A client's read timeout must be longer than its `WAIT`; [many are shorter](../guide/redis-clients.md#what-every-client-needs).
- **`COUNT`** is a maximum. If bodies are large, a reply has fewer jobs although more are ready: it has at least one job, and no further
  job once it has 8 MiB. Pop again for the rest.
- **Times.** A delay, wait or lease is "250ms", "30s", "1h30m", "7d", or a bare number of seconds; a moment is RFC 3339 or Unix seconds.
  With `AT` the delay must be 0.
- **Names** of commands and options are not case-sensitive. In `POP`, the first word is a topic even if it looks like an option.
- **Headers** of a job are given as `HEADER name value`, once for each. `GET` shows them as the map `headers`. A `POP` returns them only with
  `HEADERS`: then each job has a seventh value, a map. [What a header may be](job-life.md#headers).
- **Callback headers** are given as `CALLBACKHEADER name value`, with `CALLBACK`. They are sent with the call of that URL alone, and never shown
  ([Headers of a callback](../guide/webhooks.md#headers-of-a-callback)).
- **Fields.** With `FIELDS` a command returns a map of named fields, with the names of `GET` and `STATS`, instead of its short reply. The short replies stay as they
  are. A client that does not know a field must ignore it.
- **Settings** have the names and the texts of the [configuration file](configuration.md#topicsname): `SETTINGS SET order attempts 5 backoff 10s,1m rate 100/1s
  keep_done.time 1h`. Several secrets are an array of texts in JSON. A number or a flag is returned as an integer.
- **News** of single jobs come as push messages (`>`) after `HELLO 3` and `NEWS START`, between replies: `["news", cursor, map]`, with the fields `news`, `at_ms`, `topic`,
  `id` (or `jobs`, a number), `group`, `state`, `attempt`, `due_ms`, `error`; what does not apply is left out. `["news-missed", n]`: at most `n` were missed, 0 means that the number
  is not known. `["news-ended", why]`: the token was revoked. `OF` names what to tell: `pushed`, `due`, `handed_over`, `done`, `failed`, `dead`, `cancelled`, with commas between
  them, or `all`. `AFTER` goes on from a cursor. They are those of [`/v1/events`](http.md), and [may be missed](../guide/operations.md#news-of-jobs).
- **Leases** are opaque texts. `ACK` returns how many of the leases were current; the others had expired or were acked before.
- **Limits.** A length above a limit is refused before memory is allocated for it. While a client has a megabyte of unread replies, the
  server reads no further commands from it; if the client reads nothing for 30 seconds, it is closed. Before `AUTH`, if tokens are
  configured, a command has at most 16 KiB.
- **HTTP.** A line that looks like HTTP (`POST ...`, `Host: ...`, `GET / HTTP/1.1`) closes the connection, and nothing after it is read:
  a web page can make a browser send such lines to any port.

## MULTI and EXEC
`MULTI` starts to collect the commands that follow. `EXEC` executes them in their order and returns an array of their replies. `DISCARD`
drops them. This is what redis-py's `pipeline()` and other clients' `multi()` send. At most 10,000 commands, and as many bytes as one command may have.

- Nothing runs before `EXEC`. If a command was refused when it was collected (unknown command, wrong number of arguments, token without
  permission, too many), `EXEC` returns `-EXECABORT`, and nothing has run. `AUTH`, `HELLO` and `MULTI` cannot be collected.
- Other errors of a command (a malformed delay, an id in use) are its own reply in the array; the other commands still run.
- It is a batch, not a transaction. Nothing is rolled back; commands of other connections may run in between; after a crash or a
  disconnect the first commands may be done and the rest not. Consecutive commands of one kind are one commit, as in any pipeline.
- A `POP` in it does not wait. There is no `WATCH`.

## Commands
| command | what |
|---|---|
)";

constexpr std::string_view kErrors = R"(
## Errors
`-CODE what is wrong and what would be correct`. Bytes that are not a command get `-ERR Protocol error: ...`, and the connection is
closed. Exit codes are those of the `delayq` command.

| code | name | exit code | retry may succeed |
|---|---|---|---|
)";

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

std::string command_reference() {
  std::string out(kHead);
  const auto add = [&out](const CommandSpec& spec) {
    out += fmt::format("| `{}` | {} |\n", escaped(spec.usage), escaped(spec.summary));
  };
  for (const CommandSpec& spec : all_commands()) {
    if (!is_group(spec.verb)) add(spec);
    for (const CommandSpec& each : longer_commands()) {
      if (is_within(each, spec)) add(each);
    }
  }
  out += kErrors;
  for (const ErrorTraits& traits : kErrorTable) {
    out += fmt::format("| `{}` | `{}` | {} | {} |\n", traits.resp_prefix, traits.name, traits.exit_code,
                       traits.retryable ? "yes" : "no");
  }
  return out;
}

}  // namespace delayq::resp
