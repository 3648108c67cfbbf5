#include "api/resp/command_table.h"

#include <array>
#include <cstring>

namespace delayq::resp {

namespace {

constexpr Scopes kPushing = only(Scope::kPush);
constexpr Scopes kConsuming = only(Scope::kConsume);
constexpr Scopes kReading = only(Scope::kRead);
constexpr Scopes kOperating = only(Scope::kAdmin);
constexpr Scopes kAny = kAnyScope;

constexpr std::array kCommands{
    CommandSpec{
        Verb::kPush, "PUSH", 3, kAnyNumber, true, kPushing, Topics::kFirst,
        "PUSH topic delay body [ID id] [AT moment] [PRI n] [ATTEMPTS n] [BACKOFF spec] [LEASE duration] "
        "[GROUP group] [CALLBACK url] [METHOD method] [FORMAT format] [REPLACE|KEEP] [UNIQUE]",
        "Stores a job that falls due after the delay. Returns its id."},
    CommandSpec{Verb::kPop, "POP", 1, kAnyNumber, true, kConsuming, Topics::kNone,
                "POP topic [topic ...] [COUNT n] [WAIT duration] [LEASE duration] [AUTOACK]",
                "Takes jobs that are due: [lease, topic, id, body, attempt, due_ms] each."},
    CommandSpec{Verb::kAck, "ACK", 1, kAnyNumber, true, kConsuming, Topics::kLeases, "ACK lease [lease ...]",
                "Marks these jobs as done. Returns how many of the leases were current."},
    CommandSpec{
        Verb::kNack, "NACK", 1, kAnyNumber, true, kConsuming, Topics::kFirstLease,
        "NACK lease [DELAY duration] [REASON text] [DEAD]",
        "The attempt failed: the job is retried by the topic's policy or after the delay, or is dead."},
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
    CommandSpec{Verb::kCancelGroup, "CANCELGROUP", 1, 1, true, kPushing, Topics::kNone, "CANCELGROUP group",
                "Cancels all waiting jobs of a group; running ones will not be retried. Returns the number "
                "of both together. With a token for some topics only the jobs of these topics are affected."},
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
    CommandSpec{Verb::kForget, "FORGET", 1, 1, true, kOperating, Topics::kFirst, "FORGET topic",
                "Removes the settings and figures of a topic that has no jobs."},
    CommandSpec{
        Verb::kTopics, "TOPICS", 0, 2, false, kAny, Topics::kNone, "TOPICS [cursor [count]]",
        "A page of topics: [next cursor, [[name, delayed, ready, reserved, done, dead, paused] ...]]."},
    CommandSpec{Verb::kStats, "STATS", 0, 1, false, kAny, Topics::kFirstIfAny, "STATS [topic]",
                "Counts, rates and lateness."},
    CommandSpec{Verb::kList, "LIST", 2, kAnyNumber, false, kReading, Topics::kFirst,
                "LIST topic state [PREFIX id] [ERROR text] [COUNT n] [CURSOR cursor]",
                "A page of jobs in a state: [next cursor, [job ...]]."},
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

constexpr size_t kLongestName = 16;

constexpr size_t longest_name() {
  size_t longest = 0;
  for (const CommandSpec& spec : kCommands) longest = spec.name.size() > longest ? spec.name.size() : longest;
  return longest;
}
static_assert(longest_name() <= kLongestName);

}  // namespace

std::span<const CommandSpec> all_commands() { return kCommands; }

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

}  // namespace delayq::resp
