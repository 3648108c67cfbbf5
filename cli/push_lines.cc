#include "cli/push_lines.h"

#include <filesystem>
#include <fstream>
#include <istream>
#include <ostream>
#include <system_error>

#include <fmt/format.h>

#include "cli/human.h"
#include "cli/line_reader.h"
#include "cli/progress.h"
#include "core/limits.h"
#include "json/writer.h"

namespace delayq::cli {

namespace {

// Enough for one commit of the server to be worth it, and little enough to wait for.
constexpr size_t kBatchJobs = 500;
constexpr size_t kBatchBytes = size_t{1} << 20;

/// Where a body came from, for messages.
std::string place(const std::string& file, uint64_t line) {
  return file.empty() ? fmt::format("line {}", line) : fmt::format("{}, line {}", file, line);
}

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

}  // namespace

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

}  // namespace delayq::cli
