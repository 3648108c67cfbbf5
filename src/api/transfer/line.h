#pragma once

#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "json/reader.h"
#include "json/writer.h"
#include "queue/queue.h"
#include "queue/settings_table.h"
#include "queue/verbs.h"

/// Jobs, settings and schedules as NDJSON: one JSON object a line, readable by people and programs.
///
///   {"schedule":"nightly","topic":"report","cron":"0 2 * *
///   *","zone":"Asia/Shanghai","body":{"kind":"daily"},
///    "progress":{"created_at":"...","decided_until":"...","made":7,"previous_at":"...","previous_topic":"..."}}
///   {"topic":"order","settings":{"attempts":5,"backoff":"10s,1m"}}
///   {"topic":"order","id":"7","state":"delayed","due_at":"2030-01-31T08:00:00.000Z","pushed_at":"...",
///    "attempts":0,"priority":1024,"group":"customer:1","body":{"uid":1},"max_attempts":3,"backoff":"30s",
///    "lease":"2m","callback":"http://...","callback_method":"PUT","callback_format":"cloudevents",
///    "content_type":"...","name":"...","headers":{"traceparent":"..."},"outcome":"...","kept_until":"..."}
///
/// A body is under "body" when it is a JSON value that fits in a line, byte for byte; else under "body_text"
/// when it is text (in UTF-8, with few escapes); else under "body_base64". An outcome that is not UTF-8 is
/// under "outcome_base64". A field with its default is left out. Reading a written line gives the same job.
namespace delayq::transfer {

/// Whether the number of secrets is written.
enum class SecretCounts : uint8_t { kShown, kLeftOut };

/// Writes a member for each setting that has a value. Secrets are never written, only their number.
void write_settings(json::Writer& json, const SettingValues& settings, SecretCounts secrets);

/// Reads what write_settings() has written without the number of secrets. kInvalid, with the field that is
/// wrong; values that are out of range are accepted here and refused by the queue.
Result<SettingValues> read_settings(const json::Slice& object, std::span<const Setting> rows);

/// Appends the line, with its end. The lease of a reserved job is not written: it is not valid elsewhere.
void write_line(std::string& out, const ExportItem& item);

/// A parsed line. `item`, `schedule` and `topic` point into it and into the line's text.
struct Line {
  RestoreItem item;
  std::string_view topic;
  std::optional<Settings> settings;      ///< set: the line has those of `topic`, and no job
  std::optional<ScheduleSpec> schedule;  ///< set: the line has this, and no job
  /// Of the schedule; nullopt: it begins when it is imported.
  std::optional<ScheduleProgress> progress;
  /// Set: the line has only the schedule's name, and marks the schedule that is there: Queue::mark_moving().
  std::optional<bool> moving;
  std::deque<std::string> texts;
};

/// Fails with kInvalid and the field that is wrong. The queue checks whether the values go together.
Result<Line> parse_line(std::string_view text);

/// One result for each line, in their order.
using ImportResults = std::vector<Result<RestoreOutcome>>;

/// Reads lines and restores their jobs, settings and schedules, in the order of the lines. A line that
/// marks a schedule as moving does not see one that the same call creates. A malformed line does not stop the
/// others. The lines need to live only until the call returns. The reply may be called from inside this call,
/// if no line needs the queue.
void import_lines(Queue& queue, Moment now, std::span<const std::string_view> lines, OnConflict on_conflict,
                  Reply<ImportResults> reply);

/// How many lines of each outcome there were.
struct ImportCounts {
  uint64_t created = 0;
  uint64_t replaced = 0;
  uint64_t kept = 0;
  uint64_t dropped = 0;
  uint64_t failed = 0;

  void add(const Result<RestoreOutcome>& result);
};

}  // namespace delayq::transfer
