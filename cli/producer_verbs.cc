#include <filesystem>
#include <fstream>
#include <istream>
#include <ostream>
#include <system_error>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/importing.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "core/limits.h"
#include "core/text.h"
#include "json/writer.h"

namespace delayq::cli {

namespace {

// Large enough to use the server's commits well, and small enough to wait for.
constexpr size_t kBatchJobs = 500;
constexpr size_t kBatchBytes = size_t{1} << 20;

/// Where a body came from, for messages.
std::string place(const std::string& file, uint64_t line) {
  return file.empty() ? fmt::format("line {}", line) : fmt::format("{}, line {}", file, line);
}

/// Input of which each line is the body of a job. In its command the body stands between `before` and
/// `after`.
struct LinePush {
  Words before, after;
  std::vector<std::string> files;  ///< none: standard input
};

class LinePusher {
 public:
  LinePusher(const Session& session, const LinePush& push, uint64_t total_bytes)
      : session_(session), push_(push), progress_(session.world, "pushing", total_bytes) {}

  Status add_all(std::istream& in, const std::string& file) {
    file_ = file;
    LineReader reader(in, Limits::kMaxBodyBytes);
    const uint64_t bytes_before = read_bytes_;
    for (std::string text;;) {
      const Result<bool> more = reader.next(text);
      read_bytes_ = bytes_before + reader.bytes();
      if (!more) {
        if (Status status = flush(); !status) return status;
        return refused(reader.number(), more.error());
      }
      if (!*more) break;
      if (text.empty()) continue;
      add(std::move(text), reader.number());
      if (batch_.size() < kBatchJobs && batch_bytes_ < kBatchBytes) continue;
      if (Status status = flush(); !status) return status;
    }
    if (Status status = flush(); !status) return status;
    if (in.bad()) return invalid(fmt::format("{}: cannot be read", place(file_, reader.number() + 1)));
    return {};
  }

  uint64_t pushed() const { return pushed_; }

 private:
  void add(std::string body, uint64_t line) {
    batch_bytes_ += body.size();
    Words command = push_.before;
    command.push_back(std::move(body));
    command.insert(command.end(), push_.after.begin(), push_.after.end());
    batch_.push_back(std::move(command));
    batch_lines_.push_back(line);
  }

  Status flush() {
    if (batch_.empty()) return {};
    const Result<std::vector<resp::Value>> replies = session_.ask_all(batch_);
    if (!replies) {
      Error error = replies.error();
      error.detail = fmt::format(
          "{}: {}; the {} jobs of the lines before are pushed, and of the lines from here to {} we do not "
          "know",
          place(file_, batch_lines_.front()), error.detail, grouped(static_cast<int64_t>(pushed_)),
          batch_lines_.back());
      return error;
    }
    const resp::Value* bad = nullptr;
    uint64_t bad_line = 0;
    for (size_t i = 0; i < replies->size(); ++i) {
      const resp::Value& reply = (*replies)[i];
      if (reply.type == resp::Value::Type::kBulk) {
        ++pushed_;
      } else if (bad == nullptr) {
        bad = &reply;
        bad_line = batch_lines_[i];
      }
    }
    const uint64_t last = batch_lines_.back();
    batch_.clear();
    batch_lines_.clear();
    batch_bytes_ = 0;
    progress_.show(read_bytes_, pushed_);
    if (bad == nullptr) return {};
    Error error = bad->is_error() ? error_of_reply(bad->text) : unexpected_reply();
    if (last > bad_line)
      error.detail += fmt::format(" (the lines up to {} were sent together with it)", last);
    return refused(bad_line, error);
  }

  Error refused(uint64_t line, Error error) const {
    error.detail = fmt::format("{}: {}; {} jobs are pushed", place(file_, line), error.detail,
                               grouped(static_cast<int64_t>(pushed_)));
    return error;
  }

  const Session& session_;
  const LinePush& push_;
  Progress progress_;
  std::string file_;
  uint64_t read_bytes_ = 0;
  uint64_t pushed_ = 0;
  std::vector<Words> batch_;
  std::vector<uint64_t> batch_lines_;
  size_t batch_bytes_ = 0;
};

Status push_all(const Session& session, const LinePush& push, LinePusher& pusher) {
  if (push.files.empty()) return pusher.add_all(session.world.in, {});
  for (const std::string& file : push.files) {
    if (file == "-") {  // standard input, among files
      if (Status status = pusher.add_all(session.world.in, {}); !status) return status;
      continue;
    }
    std::ifstream in(file, std::ios::binary);
    std::error_code error;
    if (!in || std::filesystem::is_directory(file, error))
      return invalid(fmt::format("--lines: {} cannot be read", file));
    if (Status status = pusher.add_all(in, file); !status) return status;
  }
  return {};
}

/// One job for each line, many in one conversation, in bounded memory however long the input is. The line end
/// is not part of the body, and an empty line is no job. Shows the progress on a terminal, and the number of
/// jobs at the end. Stops at the first line that is refused and names it.
Status push_lines(const Session& session, const LinePush& push) {
  if (push.files.empty() && session.world.in_is_terminal)
    return invalid("--lines: name files, or pipe the lines in");
  uint64_t pushed = 0;
  {
    LinePusher pusher(session, push, total_bytes(push.files));
    if (Status status = push_all(session, push, pusher); !status) return status;
    pushed = pusher.pushed();
  }
  const auto count = static_cast<int64_t>(pushed);
  session.say(fmt::format("{} pushed", grouped(count)), json::Object().number("pushed", count).finish());
  return {};
}

// ---- push: one job, one for each file, or one for each line

using Text = std::optional<std::string>;

class Push final : public Verb {
 public:
  std::string_view name() const override { return "push"; }
  std::string_view help() const override { return "Push a job, to be handed over after a delay"; }

  void add_options(CLI::App& app) override {
    app.add_option("TOPIC", topic_, "The topic")->required();
    app.add_option("DELAY", first_, "30s, 15m, 1h30m, 7d; default 0; not with --at");
    app.add_option("BODY", second_, "The body; - or none: read from standard input");
    CLI::Option* const file =
        app.add_option("--file", files_, "The body is in this file; given several times: a job for each")
            ->type_name("FILE")
            ->expected(1)
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    lines_option_ =
        app.add_option("--lines", lines_, "A job for each line of these files, or of standard input")
            ->type_name("[FILE ...]")
            ->expected(0, CLI::detail::expected_max_vector_size)
            ->excludes(file);
    app.add_option("--id", id_, "Your own id, unique in the topic; default: a generated one")
        ->excludes(lines_option_);
    app.add_option("--at", at_, "When it is due: 2030-01-31T08:00:00Z or Unix seconds");
    flags_.add_to(app);
    CLI::Option* const conflict =
        app.add_option("--on-conflict", on_conflict_,
                       "If a job with this id waits or runs: refuse, replace it, or keep it; default reject")
            ->check(CLI::IsMember(std::vector<std::string>{"reject", "replace", "keep"}));
    CLI::Option* const replace =
        app.add_flag("--replace", replace_, "The same as --on-conflict replace")->excludes(conflict);
    app.add_flag("--keep", keep_, "The same as --on-conflict keep")->excludes(replace)->excludes(conflict);
    app.add_flag("--unique", unique_, "Also refuse an id that waits or runs in any other topic");
  }

  Status run(const Session& session) override {
    // With --at there is no delay, so the body is the first word.
    const Text& delay = at_ ? Text{} : first_;
    const Text& given = at_ ? first_ : second_;
    if (at_ && second_) return invalid("delay: cannot be given together with --at");
    const bool from_lines = lines_option_->count() > 0;
    if (given && (from_lines || !files_.empty()))
      return invalid("body: cannot be given together with --file or --lines");
    if (id_ && files_.size() > 1) return invalid("--id: several files cannot have the same id");
    const Words before{"PUSH", topic_, delay.value_or("0")};
    if (from_lines) {
      std::erase(lines_, "");  // CLI11 passes an empty text if there is no value
      return push_lines(session, {.before = before, .after = options(), .files = lines_});
    }
    if (files_.empty()) {
      Result<std::string> body =
          given_body(session, given.value_or("-"), "give it after the delay, name a --file, or pipe it in");
      return body ? push(session, before, std::move(*body)) : Status{body.error()};
    }
    for (const std::string& file : files_) {
      Result<std::string> body = read_body_file(file);
      if (!body) return body.error();
      if (Status status = push(session, before, std::move(*body)); !status) return status;
    }
    return {};
  }

 private:
  /// The words after the body.
  Words options() const {
    Words words;
    append_option(words, "ID", id_);
    append_option(words, "AT", at_);
    flags_.append_to(words);
    if (replace_ || on_conflict_ == "replace") words.emplace_back("REPLACE");
    if (keep_ || on_conflict_ == "keep") words.emplace_back("KEEP");
    if (unique_) words.emplace_back("UNIQUE");
    return words;
  }

  /// Whether a job with this id may be there already, so that the result is of interest.
  bool may_meet() const { return replace_ || keep_ || on_conflict_ == "replace" || on_conflict_ == "keep"; }

  Status push(const Session& session, Words command, std::string body) const {
    command.push_back(std::move(body));
    const Words after = options();
    command.insert(command.end(), after.begin(), after.end());
    // The short reply is the id; a server of an earlier version knows no other.
    const bool with_fields = session.json || may_meet();
    if (with_fields) command.emplace_back("FIELDS");
    Result<resp::Value> reply = session.ask(command);
    if (!reply) return with_advice(reply.error());
    const resp::Value* const id = with_fields ? reply->find("id") : &*reply;
    if (id == nullptr || id->type != resp::Value::Type::kBulk) return unexpected_reply();
    std::string human = printable(id->text, Limits::kIdBytes * 4);
    if (!with_fields) return say(session, human);
    const resp::Value* const result = reply->find("result");
    if (result != nullptr) human += " " + printable(result->text, kShownTopic);
    add_field(*reply, "topic", topic_);
    session.say(human, map_as_json(*reply));
    return {};
  }

  static Status say(const Session& session, std::string_view human) {
    session.say(human, {});
    return {};
  }

  Error with_advice(Error error) const {
    if (error.code == ErrorCode::kConflict && id_ && !may_meet() && !unique_)
      error.detail += ". To replace or keep that job: --on-conflict replace or --on-conflict keep";
    return error;
  }

  std::string topic_;
  Text first_, second_, id_, at_, on_conflict_;
  JobFlags flags_;
  std::vector<std::string> files_, lines_;
  CLI::Option* lines_option_ = nullptr;
  bool replace_ = false;
  bool keep_ = false;
  bool unique_ = false;
};

}  // namespace

void add_push_verb(Verbs& verbs) { verbs.push_back(std::make_unique<Push>()); }

// For producers: get, cancel, reschedule; push has a file of its own.

namespace {

using Text = std::optional<std::string>;

class Get final : public Verb {
 public:
  std::string_view name() const override { return "get"; }
  std::string_view help() const override { return "Look a job up"; }

  void add_options(CLI::App& app) override {
    app.add_option("TOPIC", topic_, "The topic")->required();
    app.add_option("ID", id_, "The job's id")->required();
  }

  Status run(const Session& session) override {
    const Result<resp::Value> reply = session.ask({"GET", topic_, id_});
    if (!reply) return reply.error();
    if (reply->type == resp::Value::Type::kNull) {
      return Error{ErrorCode::kNotFound, {}, fmt::format("topic {} has no job {}", topic_, quote(id_))};
    }
    return show_map(session, *reply) ? Status{} : unexpected_reply();
  }

 private:
  std::string topic_, id_;
};

class Cancel final : public Verb {
 public:
  std::string_view name() const override { return "cancel"; }
  std::string_view help() const override { return "Cancel a job, or a whole group"; }

  void add_options(CLI::App& app) override {
    app.add_option("TOPIC", topic_, "The topic");
    app.add_option("ID", id_, "The job's id");
    app.add_option("--group", group_, "Cancel all jobs of this group instead");
  }

  Status run(const Session& session) override {
    if (group_) return topic_ ? invalid("group: is given instead of TOPIC and ID") : run_group(session);
    if (!topic_ || !id_) return invalid("TOPIC and ID are needed, or --group");
    const Result<resp::Value> reply = session.ask({"CANCEL", *topic_, *id_});
    if (!reply) return reply.error();
    if (reply->text.empty()) return unexpected_reply();
    session.say(printable(reply->text, Limits::kIdBytes),
                json::Object().text("result", reply->text).finish());
    return {};
  }

 private:
  Status run_group(const Session& session) {
    const Result<resp::Value> reply = session.ask({"CANCELGROUP", *group_, "FIELDS"});
    if (!reply) return reply.error();
    const resp::Value* const cancelled = reply->find("cancelled");
    const resp::Value* const reserved = reply->find("reserved");
    if (cancelled == nullptr || reserved == nullptr) return unexpected_reply();
    std::string human = fmt::format("{} cancelled", grouped(cancelled->integer));
    if (reserved->integer > 0)
      human += fmt::format(", {} running: not tried again", grouped(reserved->integer));
    session.say(human, json::Object()
                           .number("cancelled", cancelled->integer)
                           .number("reserved", reserved->integer)
                           .finish());
    return {};
  }

  Text topic_, id_, group_;
};

class Reschedule final : public Verb {
 public:
  std::string_view name() const override { return "reschedule"; }
  std::string_view help() const override { return "Move a job to another time; 0 runs it now"; }

  void add_options(CLI::App& app) override {
    app.add_option("TOPIC", topic_, "The topic")->required();
    app.add_option("ID", id_, "The job's id")->required();
    app.add_option("DELAY", delay_, "From now: 30s, 15m, 1h30m, 7d");
    app.add_option("--at", at_, "Or a moment: 2030-01-31T08:00:00Z or Unix seconds");
  }

  Status run(const Session& session) override {
    if (delay_.has_value() == at_.has_value()) return invalid("either DELAY or --at is needed");
    Words command{"RESCHEDULE", topic_, id_};
    if (delay_) command.push_back(*delay_);
    append_option(command, "AT", at_);
    const Result<resp::Value> reply = session.ask(command);
    if (!reply) return reply.error();
    session.say("moved", json::Object().text("result", "moved").finish());
    return {};
  }

 private:
  std::string topic_, id_;
  Text delay_, at_;
};

}  // namespace

void add_producer_verbs(Verbs& verbs) {
  add_push_verb(verbs);
  verbs.push_back(std::make_unique<Get>());
  verbs.push_back(std::make_unique<Cancel>());
  verbs.push_back(std::make_unique<Reschedule>());
}

}  // namespace delayq::cli
