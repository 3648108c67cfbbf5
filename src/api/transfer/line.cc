#include "api/transfer/line.h"

#include <deque>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "api/transfer/members.h"
#include "core/duration.h"
#include "core/limits.h"
#include "core/moment.h"
#include "json/reader.h"
#include "json/writer.h"

namespace delayq::transfer {

// ---- writing

namespace {

// ---- a setting's value, by its kind

void write_value(json::Writer& json, const NumberKind& /*kind*/, uint64_t value) { json.number(value); }
void write_value(json::Writer& json, const DurationKind& /*kind*/, Millis value) {
  json.text(format_duration(value));
}
void write_value(json::Writer& json, const FlagKind& /*kind*/, bool value) { json.boolean(value); }
void write_value(json::Writer& json, const TextKind& /*kind*/, const std::string& value) { json.text(value); }
void write_value(json::Writer& json, const WordKind& kind, uint64_t value) {
  json.text(kind.words.names[value]);
}
void write_value(json::Writer& json, const BackoffKind& /*kind*/, const Backoff& value) {
  json.text(format_backoff(value));
}
void write_value(json::Writer& json, const RateKind& /*kind*/, const Rate& value) {
  json.text(format_rate(value));
}
void write_value(json::Writer& json, const RetentionKind& /*kind*/, const RetentionSetting& value) {
  json.begin_object();
  if (value.time) json.key("time").text(format_duration(*value.time));
  if (value.count) json.key("count").number(uint64_t{*value.count});
  json.end_object();
}
/// How many there are, never which.
void write_value(json::Writer& json, const SecretsKind& /*kind*/, const std::vector<std::string>& value) {
  json.number(uint64_t{value.size()});
}

void write_job(json::Writer& json, const Job& job) {
  json.key("id").text(job.id).key("state").text(name_of(job.state));
  json.key("due_at").text(format_moment(job.due)).key("pushed_at").text(format_moment(job.pushed));
  json.key("attempts").number(uint64_t{job.attempts}).key("priority").number(uint64_t{job.priority});
  if (!job.group.empty()) json.key("group").text(job.group);
  json::write_body(json, job.body);
  if (!job.options.empty()) write_options(json, decode_job_options(job.options));
  if (!job.outcome.empty()) json.bytes("outcome", job.outcome);
  if (!is_live(job.state)) json.key("kept_until").text(format_moment(job.until));
  if (job.cancel_requested) json.key("cancel_requested").boolean(true);
}

}  // namespace

void write_settings(json::Writer& json, const SettingValues& settings, SecretCounts secrets) {
  for (size_t i = 0; i < settings.rows.size(); ++i) {
    const Setting& row = settings.rows[i];
    const bool is_secret = std::holds_alternative<SecretsKind>(row.kind);
    if (!settings.values[i] || (is_secret && secrets == SecretCounts::kLeftOut)) continue;
    json.key(is_secret ? count_name(row) : std::string(row.name));
    visit_setting(row, *settings.values[i],
                  [&](const auto& kind, const auto& value) { write_value(json, kind, value); });
  }
}

void write_line(std::string& out, const ExportItem& item) {
  json::Writer json(out);
  json.begin_object();
  if (item.schedule != nullptr) {
    write_schedule(json, *item.schedule);
    json.end_object();
    out += '\n';
    return;
  }
  json.key("topic").text(item.job.topic);
  if (item.settings) {
    json.key("settings").begin_object();
    write_settings(json, topic_settings().values(*item.settings), SecretCounts::kLeftOut);
    json.end_object();
  } else if (item.job.id.empty()) {  // must be visible in the export; importing it is refused
    json.key("state").text(name_of(item.job.state)).key("damaged").text(item.job.outcome);
  } else {
    write_job(json, item.job);
  }
  json.end_object();
  out += '\n';
}

// ---- reading

namespace {

void read_state(Members& members, Job& job) {
  const std::optional<std::string_view> name = members.text("state");
  members.need(name.has_value(), "state");
  const std::optional<JobState> state = name ? parse_job_state(*name) : std::nullopt;
  if (name && !state) members.note("state", "expected delayed, ready, reserved, done or dead");
  job.state = state.value_or(JobState::kDelayed);
  const std::optional<Moment> until = members.parsed("kept_until", parse_moment);
  if (is_live(job.state) == until.has_value())
    members.note("kept_until", is_live(job.state) ? "only done and dead jobs have one" : "is missing");
  job.until = until.value_or(Moment{});
}

void read_job(Members& members, Line& line) {
  Job& job = line.item.job;
  job.topic = line.topic;
  if (members.text("damaged"))
    return members.note("damaged", "this job could not be read when it was exported");
  const std::optional<std::string_view> id = members.text("id");
  members.need(id.has_value(), "id");
  job.id = id.value_or(std::string_view());
  read_state(members, job);
  const std::optional<Moment> due = members.parsed("due_at", parse_moment);
  members.need(due.has_value(), "due_at");
  job.due = due.value_or(Moment{});
  job.pushed = members.parsed("pushed_at", parse_moment).value_or(job.due);
  job.attempts = members.number("attempts").value_or(0);
  job.priority = members.number("priority").value_or(kDefaultPriority);
  job.group = members.text("group").value_or(std::string_view());
  job.cancel_requested = members.boolean("cancel_requested").value_or(false);
  job.outcome = members.text("outcome").value_or(std::string_view());
  if (const auto base64 = members.text("outcome_base64"))
    job.outcome = members.decoded("outcome_base64", *base64);
  job.body = read_body(members);
  read_options(members, line.item.options);
}

/// {"time": "1h", "count": 1000}; for a rate both of them.
template <class Parts>
std::optional<Parts> read_pair(Members& members, std::string_view name, std::string_view count_name,
                               std::string_view time_name, std::deque<std::string>& texts) {
  const json::Slice* value = members.find(name);
  if (value == nullptr) return std::nullopt;
  if (value->type != json::Type::kObject) {
    members.note(name, fmt::format("expected an object, got {}", name_of(value->type)));
    return std::nullopt;
  }
  Members parts(*value, texts);
  const std::optional<uint32_t> count = parts.number(count_name);
  const std::optional<Millis> time = parts.parsed(time_name, parse_duration);
  Parts result;
  if constexpr (std::is_same_v<Parts, Rate>) {
    parts.need(count.has_value(), count_name);
    parts.need(time.has_value(), time_name);
    result = {count.value_or(0), time.value_or(Millis{})};
  } else {
    result.count = count;
    result.time = time;
  }
  if (const Status status = parts.finish(); !status.ok()) members.note(name, status.error().detail);
  return result;
}

/// The value of a member, by the kind of its setting; nullopt when it is missing or wrong.
class ValueReader {
 public:
  ValueReader(Members& members, std::deque<std::string>& texts, std::string_view name)
      : members_(members), texts_(texts), name_(name) {}

  std::optional<SettingValue> operator()(const NumberKind& kind) const {
    return any(kind.most > kMax32Bits ? members_.large_number(name_)
                                      : members_.large_number(name_, kMax32Bits));
  }
  std::optional<SettingValue> operator()(const DurationKind& /*kind*/) const {
    return any(members_.parsed(name_, parse_duration));
  }
  std::optional<SettingValue> operator()(const FlagKind& /*kind*/) const {
    return any(members_.boolean(name_));
  }
  std::optional<SettingValue> operator()(const TextKind& /*kind*/) const {
    const auto text = members_.text(name_);
    return text ? std::optional<SettingValue>(std::string(*text)) : std::nullopt;
  }
  std::optional<SettingValue> operator()(const WordKind& kind) const {
    const auto find = [&kind](std::string_view word) { return kind.words.find(word); };
    const std::optional<size_t> place = members_.parsed(name_, find);
    return place ? std::optional<SettingValue>(uint64_t{*place}) : std::nullopt;
  }
  std::optional<SettingValue> operator()(const BackoffKind& /*kind*/) const {
    return any(members_.parsed(name_, parse_backoff));
  }
  std::optional<SettingValue> operator()(const RateKind& /*kind*/) const {
    // Lines of earlier builds have an object.
    const json::Slice* const value = members_.peek(name_);
    if (value != nullptr && value->type == json::Type::kObject)
      return any(read_pair<Rate>(members_, name_, "count", "per", texts_));
    return any(members_.parsed(name_, parse_rate));
  }
  std::optional<SettingValue> operator()(const RetentionKind& /*kind*/) const {
    const auto keep = read_pair<RetentionSetting>(members_, name_, "count", "time", texts_);
    return keep && !keep->is_unset() ? any(keep) : std::nullopt;
  }
  /// Not asked for: an export has none, so a line that has some is refused.
  std::optional<SettingValue> operator()(const SecretsKind& /*kind*/) const { return std::nullopt; }

 private:
  template <class T>
  static std::optional<SettingValue> any(const std::optional<T>& value) {
    return value ? std::optional<SettingValue>(*value) : std::nullopt;
  }

  Members& members_;
  std::deque<std::string>& texts_;
  std::string_view name_;
};

}  // namespace

Result<SettingValues> read_settings(const json::Slice& object, std::span<const Setting> rows) {
  if (object.type != json::Type::kObject)
    return invalid("settings", fmt::format("settings: expected an object, got {}", name_of(object.type)));
  std::deque<std::string> texts;
  Members members(object, texts);
  SettingValues settings{rows};
  for (size_t i = 0; i < rows.size(); ++i)
    settings.values[i] = std::visit(ValueReader(members, texts, rows[i].name), rows[i].kind);
  if (Status status = members.finish(); !status.ok()) return status.error();
  return settings;
}

namespace {

Result<Line> read_line(std::string_view text) {
  const Result<json::Slice> value = json::parse(text);
  if (!value.ok()) return invalid(fmt::format("the line is not JSON: {}", value.error().detail));
  if (value->type != json::Type::kObject)
    return invalid(fmt::format("expected a JSON object, got {}", name_of(value->type)));
  Line line;
  Members members(*value, line.texts);
  if (members.has("schedule")) {
    read_schedule(members, line);
    if (Status status = members.finish(); !status.ok()) return status.error();
    return line;
  }
  const std::optional<std::string_view> topic = members.text("topic");
  members.need(topic.has_value(), "topic");
  line.topic = topic.value_or(std::string_view());
  if (const json::Slice* settings = members.find("settings")) {
    const Result<SettingValues> values = read_settings(*settings, topic_settings().rows());
    if (!values.ok()) return values.error();
    line.settings = topic_settings().own(*values);
  } else {
    read_job(members, line);
  }
  if (Status status = members.finish(); !status.ok()) return status.error();
  return line;
}

}  // namespace

Result<Line> parse_line(std::string_view text) {
  Result<Line> line = read_line(text);
  if (!line.ok()) return in_verb("import", line.error());
  return line;
}

namespace {

/// The results of one import, which come from several calls to the queue.
struct PendingImport {
  ImportResults results;
  size_t unanswered = 1;  ///< calls, and one for import_lines() itself
  std::optional<Error> refusal;
  Reply<ImportResults> reply;

  void answered() {
    if (--unanswered != 0) return;
    if (refusal) return reply(*refusal);
    reply(std::move(results));
  }
};

class Importer {
 public:
  Importer(Queue& queue, Moment now, OnConflict on_conflict, std::shared_ptr<PendingImport> pending)
      : queue_(queue), now_(now), on_conflict_(on_conflict), pending_(std::move(pending)) {}

  void add(size_t place, std::string_view text) {
    Result<Line> parsed = parse_line(text);
    if (!parsed.ok()) {
      pending_->results[place] = parsed.error();
      return;
    }
    if (parsed->settings) {
      flush();  // in the order of the lines
      return set(place, *parsed);
    }
    if (parsed->schedule) {
      flush();
      return set_schedule(place, *parsed);
    }
    Line& line = lines_.emplace_back(std::move(*parsed));
    line.item.on_conflict = on_conflict_;
    items_.push_back(line.item);
    places_.push_back(place);
  }

  void flush() {
    if (items_.empty()) return;
    ++pending_->unanswered;
    queue_.restore(now_, items_,
                   [pending = pending_, places = std::move(places_)](
                       const Result<std::vector<Result<RestoreReceipt>>>& receipts) {
                     for (size_t i = 0; i < places.size(); ++i) {
                       Result<RestoreOutcome>& result = pending->results[places[i]];
                       if (!receipts.ok()) {
                         result = receipts.error();
                       } else if (!(*receipts)[i].ok()) {
                         result = (*receipts)[i].error();
                       } else {
                         result = (*receipts)[i]->outcome;
                       }
                     }
                     pending->answered();
                   });
    items_.clear();
    places_.clear();
    lines_.clear();
  }

 private:
  void set(size_t place, Line& line) {
    ++pending_->unanswered;
    queue_.restore_settings(now_, line.topic, std::move(*line.settings), on_conflict_,
                            [pending = pending_, place](const Result<RestoreOutcome>& outcome) {
                              pending->results[place] = outcome;
                              pending->answered();
                            });
  }

  void set_schedule(size_t place, const Line& line) {
    ++pending_->unanswered;
    const auto reply = [pending = pending_, place](const Result<RestoreOutcome>& outcome) {
      pending->results[place] = outcome;
      pending->answered();
    };
    if (line.moving) return queue_.mark_moving(now_, line.schedule->name, *line.moving, reply);
    ScheduleProgress progress;
    progress.created = progress.decided = now_;
    queue_.restore_schedule(now_, *line.schedule, line.progress.value_or(progress), on_conflict_, reply);
  }

  Queue& queue_;
  Moment now_;
  OnConflict on_conflict_;
  std::shared_ptr<PendingImport> pending_;
  std::deque<Line> lines_;  ///< `items_` point into these
  std::vector<RestoreItem> items_;
  std::vector<size_t> places_;
};

}  // namespace

void import_lines(Queue& queue, Moment now, std::span<const std::string_view> lines, OnConflict on_conflict,
                  Reply<ImportResults> reply) {
  auto pending = std::make_shared<PendingImport>();
  if (lines.size() > Limits::kBatchJobs) {
    const Error error{
        ErrorCode::kTooLarge, "import",
        fmt::format("{} lines: at most {} are allowed at once", lines.size(), Limits::kBatchJobs)};
    lines = lines.first(0);
    pending->refusal = error;
  }
  pending->results.resize(lines.size(), RestoreOutcome::kDropped);
  pending->reply = std::move(reply);
  Importer importer(queue, now, on_conflict, pending);
  for (size_t i = 0; i < lines.size(); ++i) importer.add(i, lines[i]);
  importer.flush();
  pending->answered();
}

void ImportCounts::add(const Result<RestoreOutcome>& result) {
  if (!result.ok()) {
    ++failed;
    return;
  }
  switch (*result) {
    case RestoreOutcome::kCreated:
      ++created;
      break;
    case RestoreOutcome::kReplaced:
      ++replaced;
      break;
    case RestoreOutcome::kKept:
      ++kept;
      break;
    case RestoreOutcome::kDropped:
      ++dropped;
      break;
  }
}

}  // namespace delayq::transfer
