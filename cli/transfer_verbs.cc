// Verbs for all jobs at once: export, import, backup.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/importing.h"
#include "cli/takeover.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "core/limits.h"

namespace delayq::cli {

namespace {

using Text = std::optional<std::string>;

constexpr Millis kBackupPatience = std::chrono::hours{24};

Error failure(std::string detail) { return {ErrorCode::kUnavailable, {}, std::move(detail)}; }

// ---- export
// ---------------------------------------------------------------------------------------------------------

/// Where lines go. A file has its name only when it is complete.
class Sink {
 public:
  Sink(const Surroundings& world, const Text& file) : out_(&world.out), is_terminal_(world.out_is_terminal) {
    if (!file || *file == "-") return;
    is_terminal_ = false;
    name_ = *file;
    file_.open(partial(), std::ios::binary | std::ios::trunc);
    out_ = &file_;
  }
  ~Sink() {
    if (name_.empty() || is_complete_) return;
    file_.close();
    std::remove(partial().c_str());
  }
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  const std::string& name() const { return name_; }
  Status write(const std::string& line) {
    *out_ << (is_terminal_ ? printable_json(line) : line) << '\n';
    return status();
  }
  Status finish() {
    out_->flush();
    if (Status done = status(); !done || name_.empty()) return done;
    file_.close();
    if (!file_ || std::rename(partial().c_str(), name_.c_str()) != 0)
      return failure(fmt::format("{} could not be written", name_));
    is_complete_ = true;
    return {};
  }

 private:
  std::string partial() const { return name_ + ".partial"; }
  Status status() const {
    if (*out_) return {};
    return failure(fmt::format("{} could not be written", name_.empty() ? "the output" : partial()));
  }

  std::ostream* out_;
  bool is_terminal_;
  std::string name_;
  std::ofstream file_;
  bool is_complete_ = false;
};

class Export final : public Verb {
 public:
  std::string_view name() const override { return "export"; }
  std::string_view help() const override { return "Write all jobs, settings and schedules as lines of JSON"; }
  void add_options(CLI::App& app) override {
    app.add_option("FILE", file_, "Where to; - or none: standard output");
    app.add_option("--topic", topic_, "Only this topic");
    app.add_option("--state", state_, "Only jobs that are delayed, ready, reserved, done or dead");
    app.add_option("--data", data_, "A data directory that no server uses, instead of a server");
  }

  Status run(const Session& session) override {
    const Result<AskAll> opened = ask_where(session, data_, Surroundings::Access::kRead);
    if (!opened) return opened.error();
    const Ask ask = one_by_one(*opened);
    const Result<uint64_t> total = count(ask);
    if (!total) return total.error();
    Sink sink(session.world, file_);
    uint64_t lines = 0;
    {
      Progress progress(session.world, "exporting", *total);
      std::string cursor;
      do {
        const Result<resp::Value> page = ask(page_after(cursor));
        if (!page) return page.error();
        if (page->items.size() != 2) return unexpected_reply();
        for (const resp::Value& line : page->items[1].items) {
          if (Status status = sink.write(line.text); !status) return status;
          ++lines;
          progress.show(lines, lines);
        }
        cursor = page->items[0].text;
      } while (!cursor.empty());
    }
    if (Status status = sink.finish(); !status) return status;
    if (sink.name().empty()) {
      session.world.err << fmt::format("{} lines\n", grouped(static_cast<int64_t>(lines)));
    } else {
      session.say(fmt::format("{} lines in {}", grouped(static_cast<int64_t>(lines)), sink.name()),
                  fmt::format("{{\"lines\":{}}}", lines));
    }
    return {};
  }

 private:
  Words page_after(const std::string& cursor) const {
    Words command{"EXPORT", "COUNT", std::to_string(Limits::kPageJobs)};
    append_option(command, "TOPIC", topic_);
    append_option(command, "STATE", state_);
    if (!cursor.empty()) append_option(command, "CURSOR", cursor);
    return command;
  }

  /// How many jobs there are, more or less: for the bar.
  Result<uint64_t> count(const Ask& ask) const {
    Words command{"STATS"};
    if (topic_) command.push_back(*topic_);
    const Result<resp::Value> stats = ask(command);
    if (!stats) return stats.error();
    uint64_t total = 0;
    for (const std::string_view state : {"delayed", "ready", "reserved", "done", "dead"}) {
      const resp::Value* const found = stats->find(state);
      if (found == nullptr || (state_ && *state_ != state)) continue;
      total += static_cast<uint64_t>(number_in(*found).value_or(0));
    }
    return total;
  }

  Text file_, topic_, state_, data_;
};

// ---- import
// ---------------------------------------------------------------------------------------------------------

class Import final : public Verb {
 public:
  std::string_view name() const override { return "import"; }
  std::string_view help() const override {
    return "Store jobs, settings and schedules that export wrote, as they were; or take over another "
           "system's jobs";
  }
  void add_options(CLI::App& app) override {
    app.add_option("FILE", files_, "Where from; - or none: standard input; with --from a redis:// URL");
    takeover_.add_to(app);
    app.add_option(
           "--on-conflict", on_conflict_,
           "What to do with an id that is there: keep it (so that an import can be repeated), replace "
           "it, or reject the line; default keep")
        ->check(CLI::IsMember({"keep", "replace", "reject"}));
    app.add_option("--data", data_, "A data directory that no server uses, instead of a server");
  }

  Status run(const Session& session) override {
    if (takeover_.is_wanted()) {
      if (on_conflict_ != "keep")
        return invalid("--on-conflict: goes not with --from, which keeps what is here");
      return takeover_.run(session, files_, data_);
    }
    if (Status status = takeover_.check_unwanted(); !status) return status;
    if (files_.empty()) files_.emplace_back("-");
    if (session.world.in_is_terminal && files_ == std::vector<std::string>{"-"})
      return invalid("FILE: is missing: name one, or pipe it in");
    const Result<AskAll> ask = ask_where(session, data_, Surroundings::Access::kMake);
    if (!ask) return ask.error();
    Status status;
    {
      Progress progress(session.world, "importing", total_bytes(files_));
      for (const std::string& file : files_) {
        status = import_file(session, *ask, file, progress);
        if (!status) break;
      }
    }
    tell(session);
    if (!status) return status;
    if (counts_.failed() == 0) return {};
    return Error{counts_.first_error(),
                 {},
                 fmt::format("{} of {} lines were not imported", counts_.failed(), counts_.lines())};
  }

 private:
  static constexpr uint64_t kMostTold = 20;

  struct LineBatch {
    Words lines;
    std::vector<uint64_t> numbers;
    size_t bytes = 0;

    void add(uint64_t number, std::string line) {
      bytes += line.size();
      numbers.push_back(number);
      lines.push_back(std::move(line));
    }
    bool is_full() const { return lines.size() >= kMostImportLines || bytes >= kMostImportBytes; }
  };

  Status import_file(const Session& session, const AskAll& ask, const std::string& name, Progress& progress) {
    std::ifstream file;
    const bool is_standard = name == "-";
    if (!is_standard) {
      file.open(name, std::ios::binary);
      if (!file) return Error{ErrorCode::kNotFound, {}, fmt::format("{} could not be opened", name)};
    }
    LineReader reader(is_standard ? session.world.in : file);
    const std::string shown = is_standard ? "standard input" : name;
    std::vector<LineBatch> batches(1);
    std::string line;
    for (;;) {
      const Result<bool> more = reader.next(line);
      if (!more) return at(shown, reader.number(), more.error());
      if (*more && line.find_first_not_of(" \t") != std::string::npos)
        batches.back().add(reader.number(), std::exchange(line, {}));
      const bool is_full = batches.back().is_full();
      if (*more && is_full && batches.size() < kMostImports) {
        batches.emplace_back();
      } else if (!*more || is_full) {
        if (Status status = send(session, ask, shown, std::exchange(batches, std::vector<LineBatch>(1)));
            !status)
          return status;
        progress.show(bytes_ + reader.bytes(), counts_.lines());
      }
      if (!*more) break;
    }
    bytes_ += reader.bytes();
    return {};
  }

  static Error at(const std::string& file, uint64_t line, Error error) {
    error.detail = fmt::format("{}:{}: {}", file, line, error.detail);
    return error;
  }

  /// Sends all of them together. Answers are counted even if other commands failed.
  Status send(const Session& session, const AskAll& ask, const std::string& file,
              std::vector<LineBatch> batches) {
    std::erase_if(batches, [](const LineBatch& batch) { return batch.lines.empty(); });
    if (batches.empty()) return {};
    std::vector<Words> commands;
    for (LineBatch& batch : batches) commands.push_back(import_command(on_conflict_, std::move(batch.lines)));
    Result<std::vector<resp::Value>> replies = ask(commands);
    if (!replies) return not_known(file, batches.front(), replies.error());
    if (replies->size() != batches.size()) return not_known(file, batches.front(), unexpected_reply());
    Status status;
    for (size_t i = 0; i < batches.size(); ++i) {
      const std::vector<uint64_t>& numbers = batches[i].numbers;
      const auto answers = import_answers(std::move((*replies)[i]), numbers.size());
      if (!answers && status) status = not_known(file, batches[i], answers.error());
      for (size_t line = 0; answers && line < numbers.size(); ++line) {
        if (const auto error = counts_.add((*answers)[line])) complain(session, file, numbers[line], *error);
      }
    }
    return status;
  }

  static Error not_known(const std::string& file, const LineBatch& batch, Error error) {
    error.detail += fmt::format("; not known what became of {}:{} and what follows: import it again", file,
                                batch.numbers.front());
    return error;
  }

  void complain(const Session& session, const std::string& file, uint64_t line, const Error& error) {
    if (counts_.failed() <= kMostTold) session.world.err << to_string(at(file, line, error)) << "\n";
    if (counts_.failed() == kMostTold + 1) session.world.err << "and more\n";
  }

  void tell(const Session& session) const {
    session.say(fmt::format("{} lines: {}", grouped(static_cast<int64_t>(counts_.lines())), counts_.text()),
                fmt::format("{{\"lines\":{},{}}}", counts_.lines(), counts_.members()));
  }

  std::vector<std::string> files_;
  std::string on_conflict_ = "keep";
  Text data_;
  ImportCounts counts_;
  uint64_t bytes_ = 0;
  TakeoverOptions takeover_;
};

// ---- backup
// ---------------------------------------------------------------------------------------------------------

class BackupVerb final : public Verb {
 public:
  std::string_view name() const override { return "backup"; }
  std::string_view help() const override { return "Copy the server's data, as of one moment, while it runs"; }
  void add_options(CLI::App& app) override {
    app.add_option("NAME", name_, "Of the copy, in the server's directory for backups")->required();
  }

  Status run(const Session& session) override {
    const Result<resp::Value> reply = session.ask({"BACKUP", name_}, kBackupPatience);
    if (!reply) return reply.error();
    return show_map(session, *reply) ? Status{} : unexpected_reply();
  }

 private:
  std::string name_;
};

}  // namespace

void add_transfer_verbs(Verbs& verbs) {
  verbs.push_back(std::make_unique<Export>());
  verbs.push_back(std::make_unique<Import>());
  verbs.push_back(std::make_unique<BackupVerb>());
}

}  // namespace delayq::cli
