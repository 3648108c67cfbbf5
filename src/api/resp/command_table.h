#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/job_state.h"
#include "core/result.h"
#include "core/retry_policy.h"
#include "core/time.h"
#include "core/token.h"

namespace delayq::resp {

/// Compares words; upper and lower case of ASCII letters are the same.
bool same_word(std::string_view a, std::string_view b);

/// Walks over a command's arguments. Every problem is an error that names the field.
class Arguments {
 public:
  explicit Arguments(std::span<const std::string_view> all) : left_(all) {}

  std::span<const std::string_view> left() const { return left_; }
  bool empty() const { return left_.empty(); }
  size_t size() const { return left_.size(); }
  /// REQUIRES: not empty.
  std::string_view front() const { return left_.front(); }
  std::string_view take() {
    const std::string_view first = left_.front();
    left_ = left_.subspan(1);
    return first;
  }
  /// Takes the next argument if it is this word.
  bool take_word(std::string_view word) {
    if (left_.empty() || !same_word(left_.front(), word)) return false;
    left_ = left_.subspan(1);
    return true;
  }

  /// The value after an option's name; an error when it is missing.
  Result<std::string_view> text(std::string_view field);
  Result<Millis> duration(std::string_view field);
  Result<Moment> moment(std::string_view field);
  Result<uint64_t> number(std::string_view field);
  /// A number that fits into 32 bits.
  Result<uint32_t> small_number(std::string_view field);
  Result<Backoff> backoff(std::string_view field);
  Result<JobState> state(std::string_view field);
  /// The error about the arguments that are left.
  Error unexpected(std::string_view usage) const;

 private:
  std::span<const std::string_view> left_;
};

/// Stores the value of an option, or returns its error.
template <class T, class Field>
Status keep(const Result<T>& value, Field& field) {
  if (!value.ok()) return value.error();
  field = *value;
  return {};
}

/// All commands.
enum class Verb : uint8_t {
  kPush,
  kPop,
  kAck,
  kNack,
  kRelease,
  kExtend,
  kGet,
  kCancel,
  kCancelGroup,
  kReschedule,
  kRedrive,
  kPurge,
  kPause,
  kResume,
  kUnset,
  kForget,
  kTopics,
  kStats,
  kList,
  kForecast,
  kNews,
  kConsumers,
  kExport,
  kImport,
  kBackup,
  kSettings,
  kSettingsGet,
  kSettingsSet,
  kSettingsUnset,
  kSchedule,
  kScheduleSet,
  kScheduleGet,
  kScheduleList,
  kScheduleDel,
  kSchedulePause,
  kScheduleResume,
  kScheduleRun,
  kScheduleNext,
  kMulti,
  kExec,
  kDiscard,
  kPing,
  kEcho,
  kAuth,
  kHello,
  kInfo,
  kServer,
  kReady,
  kCommand,
  kClient,
  kConfig,
  kSelect,
  kReset,
  kQuit,
};

/// Whether the command has a second word: SETTINGS GET.
constexpr bool is_group(Verb verb) { return verb == Verb::kSettings || verb == Verb::kSchedule; }

/// Whether the command is SETTINGS, with or without one of its second words.
constexpr bool is_settings(Verb verb) { return verb >= Verb::kSettings && verb <= Verb::kSettingsUnset; }

/// Whether the command is SCHEDULE, with or without one of its second words.
constexpr bool is_schedule(Verb verb) { return verb >= Verb::kSchedule && verb <= Verb::kScheduleNext; }

/// Where a command names its topics, for callers that may not use all of them.
enum class Topics : uint8_t {
  kNone,        ///< nowhere, or the verb itself checks each
  kFirst,       ///< the first argument
  kFirstOfTwo,  ///< the first argument when there is a second; else it is about any topic
  kFirstIfAny,  ///< the first argument when there is one; else it is about all
  kFirstLease,  ///< in the lease that is the first argument
  kLeases,      ///< in leases: all arguments
  kOption,      ///< behind the option TOPIC; all options have one value, and the first argument is none
  kAll,         ///< it is about all of them
};

/// No token is needed.
inline constexpr Scopes kForEverybody = 0;

/// One row per command: the source of the reply to COMMAND, of error messages and of the reference page.
struct CommandSpec {
  Verb verb;
  std::string_view name;  ///< in capitals
  uint32_t min_arguments;
  uint32_t max_arguments;
  bool writes;
  Scopes scopes;  ///< one of these is needed
  Topics topics;
  std::string_view usage;
  std::string_view summary;
};

/// How many words the name has: the arguments follow.
constexpr size_t words_in_name(const CommandSpec& spec) {
  return spec.name.find(' ') == std::string_view::npos ? 1 : 2;
}

inline constexpr uint32_t kAnyNumber = UINT32_MAX;

/// By their first word.
std::span<const CommandSpec> all_commands();
/// The commands of two words: those of SETTINGS and SCHEDULE.
std::span<const CommandSpec> longer_commands();

/// Returns null for an unknown name. Upper and lower case are the same.
const CommandSpec* find_command(std::string_view name);
/// The command that these words begin with: one of two words, else one of the first word.
const CommandSpec* find_command(std::span<const std::string_view> words);

/// docs/reference/resp.md, written from the command table and the error table.
std::string command_reference();

}  // namespace delayq::resp
