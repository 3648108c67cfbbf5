#include "api/resp/conversation.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "core/duration.h"
#include "core/text.h"

namespace delayq::resp {

namespace {

constexpr size_t kMostUnanswered = 16 * 1024;
/// The largest command of a client that needs a token and has not given one.
constexpr size_t kMostFromStranger = 16 * 1024;

api::AnswerKind kind_of_answer(Verb verb) {
  using Kind = api::AnswerKind;
  switch (verb) {
    case Verb::kGet:
    case Verb::kScheduleGet:
      return Kind::kJob;
    case Verb::kExport:
      return Kind::kLines;
    case Verb::kList:
    case Verb::kTopics:
    case Verb::kForecast:
    case Verb::kConsumers:
    case Verb::kImport:
    case Verb::kSettingsGet:
    case Verb::kScheduleList:
    case Verb::kScheduleNext:
      return Kind::kNames;
    default:
      return Kind::kShort;
  }
}

/// The row of a reply that is an error; kInvalid for the prefixes of Redis.
const ErrorTraits& error_in(std::string_view reply) {
  const std::string_view prefix = reply.substr(1, reply.find_first_of(" \r") - 1);
  const auto* const found = std::find_if(kErrorTable.begin(), kErrorTable.end(),
                                         [prefix](const auto& row) { return row.resp_prefix == prefix; });
  return found == kErrorTable.end() ? traits_of(ErrorCode::kInvalid) : *found;
}

bool is_error(std::string_view reply) { return reply.starts_with('-'); }

/// Whether the input begins like TLS or other binary data. Later in it, in a name or a ticket, there may be
/// lines that an attacker has chosen.
bool is_binary(std::string_view input) {
  constexpr std::string_view kBlanks = " \t\r\n\v\f";
  return !input.empty() && static_cast<unsigned char>(input[0]) < ' ' &&
         kBlanks.find(input[0]) == std::string_view::npos;
}

/// Whether a line is one of an HTTP request. A web page can make a browser send one to any port, with lines
/// of its own choice in the body.
bool is_http(std::span<const std::string_view> words) {
  if (words.empty()) return false;
  if (same_word(words[0], "POST") || same_word(words[0], "Host:")) return true;
  return words.size() == 3 && words[2].starts_with("HTTP/");
}

}  // namespace

Conversation::Conversation(Endpoint& host, net::Connection& connection, CommandLimits limits)
    : api::Conversation(host.queue, host.clock, *host.front, connection, kMostUnanswered),
      host_(host),
      limits_(limits),
      parser_(limits),
      id_(++host.last_id) {}

size_t Conversation::read(std::string_view input) {
  now_ = host_.clock();
  needed_ = 1;
  const Queue::InOrder guard = in_order();
  size_t taken = 0;
  while (wants_input()) {
    const std::string_view rest = input.substr(taken);
    if (is_binary(rest)) {
      refuse_bytes("bytes that are no command; is it TLS, where tls.certificate is not set?");
      return input.size();
    }
    const CommandParser::Outcome outcome = parser_.next(rest);
    if (outcome == CommandParser::Outcome::kPartial) {
      needed_ = parser_.needed();
      if (!is_stranger() || std::max(needed_, rest.size()) <= kMostFromStranger) break;
      refuse_stranger();
      return input.size();
    }
    const bool is_line = rest[0] != '*';
    if (outcome == CommandParser::Outcome::kBroken) {
      refuse_bytes(parser_.error());
      return input.size();
    }
    if (is_line && is_http(parser_.arguments())) {
      refuse_http();
      return input.size();
    }
    const std::vector<std::string_view>& words = parser_.arguments();
    if (!continues_batch(words)) {
      flush();
      if (!wants_input()) break;  // it is read again when the verb before it has taken effect
    }
    const CommandSpec* exec = transaction_ && words.size() == 1 ? find_command(words[0]) : nullptr;
    if (exec != nullptr && exec->verb == Verb::kExec) {
      if (!run_transaction(*exec, words)) {
        needed_ = parser_.consumed();  // it is read again when there is room for more replies
        break;
      }
    } else {
      execute(words);
    }
    taken += parser_.consumed();
    ++requests_;
    // The words of an inline command may be stored in the parser, which drops them with the next command.
    if (is_line) flush();
  }
  flush();
  return taken;
}

void Conversation::refuse_bytes(std::string_view why) {
  flush();
  // Redis sends the same text, and its clients know it.
  reply([&](Writer& writer) { writer.error("ERR", fmt::format("Protocol error: {}", why)); });
  is_over_ = true;
}

void Conversation::refuse_stranger() {
  flush();
  reply([](Writer& writer) {
    writer.error("NOAUTH", fmt::format("a valid token is needed for a command of more than {} bytes",
                                       kMostFromStranger));
  });
  is_over_ = true;
}

void Conversation::refuse_http() {
  flush();
  const Error error{
      ErrorCode::kForbidden, {}, "this port speaks RESP, not HTTP; the connection is closed for safety", {}};
  tell_if_turned_away(about("resp", "HTTP"), error);
  reply([&](Writer& writer) { write_error(writer, error); });
  is_over_ = true;
}

void Conversation::hang_up() {
  api::Conversation::hang_up();
  news_.reset();
}

void Conversation::time_out() {
  reply(
      [](Writer& writer) { writer.error("ERR", "Protocol error: the command did not come whole in time"); });
  is_over_ = true;
}

void Conversation::execute(std::span<const std::string_view> words) {
  if (words.empty()) return;
  const CommandSpec* spec = find_command(words);
  const bool is_kept = is_kept_for_exec(spec);
  if (!is_kept) note_asked(spec, words);  // a collected command is noted when it runs
  const Status status = execute(spec, words);
  if (status.ok()) return;
  if (is_kept) note_asked(spec, words);
  if (transaction_ && !transaction_->is_begun()) transaction_->abort();
  if (spec != nullptr) tell_if_turned_away(about_command(*spec, words), status.error());
  refuse(status.error());
}

Status Conversation::execute(const CommandSpec* spec, std::span<const std::string_view> words) {
  if (spec == nullptr)
    return invalid(fmt::format("unknown command {}; COMMAND LIST lists all commands", quote(words[0])));
  const size_t count = words.size() - words_in_name(*spec);
  if (count < spec->min_arguments || count > spec->max_arguments)
    return invalid(fmt::format("wrong number of arguments for {}; usage: {}", spec->name, spec->usage));
  Arguments arguments(words.subspan(words_in_name(*spec)));
  const bool was_kept = transaction_ && transaction_->is_begun();
  if (Status status = was_kept ? check_access(*spec, arguments) : admit(*spec, arguments); !status.ok())
    return status;
  if (is_kept_for_exec(spec)) return keep_for_exec(*spec, words);
  if (Status status = dispatch(spec->verb, arguments); !status.ok()) return status;
  return arguments.empty() ? Status() : arguments.unexpected(spec->usage);
}

/// Only the topic of a command is logged, not the other arguments.
Served Conversation::about_command(const CommandSpec& spec, std::span<const std::string_view> words) const {
  Served served = about("resp", spec.name);
  const bool has_topic = spec.topics == Topics::kFirst || spec.topics == Topics::kFirstOfTwo ||
                         spec.topics == Topics::kFirstIfAny || spec.verb == Verb::kPop;
  const size_t first = words_in_name(spec);
  if (has_topic && words.size() > first) served.target = words[first];
  return served;
}

void Conversation::note_asked(const CommandSpec* spec, std::span<const std::string_view> words) {
  if (!front_.tells_commands || front_.served == nullptr) return;
  // An unknown command is not logged: it may be anything, even a password.
  const Served served = spec == nullptr ? about("resp", "UNKNOWN") : about_command(*spec, words);
  Asked asked;
  asked.verb = served.verb;
  asked.peer = served.peer;
  asked.target = served.target;
  asked.token = served.token;
  asked.begun = front_.stopwatch();
  asked.may_wait = spec != nullptr && spec->verb == Verb::kPop;
  for (const std::string_view word : words.subspan(1)) asked.bytes_in += word.size();
  noted_.push_back(std::move(asked));
}

Conversation::ReplyPlace Conversation::reserve(size_t commands, size_t most_bytes) {
  const ReplyPlace place = replies_.reserve(most_bytes);
  if (noted_.empty()) return place;
  std::vector<Asked>& asked = asked_[place];
  const auto end = noted_.begin() + static_cast<ptrdiff_t>(std::min(commands, noted_.size()));
  std::move(noted_.begin(), end, std::back_inserter(asked));
  noted_.erase(noted_.begin(), end);
  return place;
}

void Conversation::tell(const Asked& asked, std::string_view reply) const {
  Served served = about("resp", asked.verb);
  served.peer = asked.peer;
  served.token = asked.token;
  served.target = asked.target;
  if (is_error(reply)) served.code = error_in(reply).name;
  served.bytes_in = asked.bytes_in;
  served.bytes_out = reply.size();
  served.took = std::chrono::duration_cast<std::chrono::microseconds>(front_.stopwatch() - asked.begun);
  served.may_wait = asked.may_wait;
  front_.served(served);
}

Status Conversation::admit(const CommandSpec& spec, const Arguments& arguments) {
  ++front_.traffic[ProtocolKind::kResp].requests;
  if (front_.access.is_open() || spec.scopes == kForEverybody) return {};
  if (Status status = front_.access.count_request(caller_, now_); !status.ok()) return status;
  return check_access(spec, arguments);
}

Status Conversation::check_access(const CommandSpec& spec, const Arguments& arguments) const {
  const api::Access& access = front_.access;
  if (access.is_open() || spec.scopes == kForEverybody) return {};
  switch (spec.topics) {
    case Topics::kNone:
      return access.check_scope(caller_, spec.scopes);
    case Topics::kFirst:
      return access.check(caller_, spec.scopes, arguments.front());
    case Topics::kFirstOfTwo:
      return arguments.size() > 1 ? access.check(caller_, spec.scopes, arguments.front())
                                  : access.check_all(caller_, spec.scopes);
    case Topics::kFirstIfAny:
      return arguments.empty() ? access.check_all(caller_, spec.scopes)
                               : access.check(caller_, spec.scopes, arguments.front());
    case Topics::kFirstLease:
      return access.check_lease(caller_, spec.scopes, arguments.front());
    case Topics::kLeases:
      for (const std::string_view lease : arguments.left()) {
        if (Status status = access.check_lease(caller_, spec.scopes, lease); !status.ok()) return status;
      }
      return {};
    case Topics::kOption:
      for (size_t i = 1; i + 1 < arguments.size(); i += 2) {
        if (!same_word(arguments.left()[i], "TOPIC")) continue;
        if (Status status = access.check(caller_, spec.scopes, arguments.left()[i + 1]); !status.ok())
          return status;
      }
      return access.check_scope(caller_, spec.scopes);
    case Topics::kAll:
      break;
  }
  return access.check_all(caller_, spec.scopes);
}

Status Conversation::dispatch(Verb verb, Arguments& arguments) {
  switch (verb) {
    case Verb::kPush:
      return push(arguments);
    case Verb::kPop:
      return pop(arguments);
    case Verb::kAck:
      return ack(arguments);
    case Verb::kNack:
      return nack(arguments);
    case Verb::kExtend:
      return extend(arguments);
    case Verb::kCancel:
      return cancel(arguments);
    case Verb::kReschedule:
      return reschedule(arguments);
    default:
      break;
  }
  if (verb == Verb::kScheduleSet) return set_schedule(arguments);
  flush();
  answer_kind_ = kind_of_answer(verb);
  if (verb == Verb::kNews) return news(arguments);
  switch (verb) {
    case Verb::kGet:
      return get(arguments);
    case Verb::kList:
      return list(arguments);
    case Verb::kTopics:
      return topics(arguments);
    case Verb::kStats:
      return stats(arguments);
    case Verb::kRedrive:
      return redrive(arguments);
    case Verb::kPurge:
      return purge(arguments);
    case Verb::kUnset:
      return unset(arguments);
    case Verb::kForget:
      return forget(arguments);
    case Verb::kExport:
      return export_page(arguments);
    case Verb::kImport:
      return import_lines(arguments);
    case Verb::kBackup:
      return backup(arguments);
    case Verb::kMulti:
      return begin_transaction();
    case Verb::kExec:
      return invalid("EXEC without MULTI");
    case Verb::kDiscard:
      return discard_transaction();
    case Verb::kRelease:
      return release(arguments);
    case Verb::kCancelGroup:
      return cancel_group(arguments);
    case Verb::kPause:
      host_.queue.pause(now_, arguments.take(), respond<void>([](Writer& writer) { writer.simple("OK"); }));
      return {};
    case Verb::kResume:
      host_.queue.resume(now_, arguments.take(), respond<void>([](Writer& writer) { writer.simple("OK"); }));
      return {};
    default:
      if (is_settings(verb)) return settings(verb, arguments);
      return is_schedule(verb) ? schedule(verb, arguments) : greet(verb, arguments);
  }
}

void Conversation::set_version(Version version) {
  if (version == version_) return;
  if (replies_.waiting() > 0) special().older.push_back({replies_.next_place(), version_});
  version_ = version;
}

Conversation::Special& Conversation::special() {
  if (special_ == nullptr) special_ = std::make_unique<Special>();
  auto& [older, nested] = *special_;
  while (!older.empty() && older.front().before <= next_sent()) older.pop_front();
  while (!nested.empty() && nested.front().end <= next_sent()) nested.pop_front();
  return *special_;
}

Version Conversation::version_of(ReplyPlace place) const {
  if (special_ == nullptr) return version_;
  const auto found =
      std::upper_bound(special_->older.begin(), special_->older.end(), place,
                       [](ReplyPlace wanted, const Older& older) { return wanted < older.before; });
  return found == special_->older.end() ? version_ : found->version;
}

void Conversation::write_replies(std::string& out, ReplyPlace place, size_t first, size_t count,
                                 EachWords write) {
  const auto asked = asked_.empty() ? asked_.end() : asked_.find(place);
  Writer writer(out, version_of(place));
  for (size_t i = first; i < first + count; ++i) {
    const size_t begin = out.size();
    write(writer, i);
    const std::string_view said = std::string_view(out).substr(begin);
    if (is_error(said)) front_.traffic[ProtocolKind::kResp].refuse(error_in(said).code);
    if (asked != asked_.end() && i < asked->second.size()) tell(asked->second[i], said);
  }
}

void Conversation::answer_each(ReplyPlace place, size_t count, EachWords write) {
  if (connection_ != nullptr) {
    replies_.fill(place, [&](std::string& out) { write_replies(out, place, 0, count, write); });
    connection_->on_output();
  } else if (asked_.contains(place)) {
    std::string unheard;
    write_replies(unheard, place, 0, count, write);
  }
  if (!asked_.empty()) asked_.erase(place);
}

void Conversation::answer(ReplyPlace place, Words words) {
  answer_each(place, 1, [&](Writer& writer, size_t) { words(writer); });
}

void Conversation::reply(Words words) { answer(reserve(), words); }

void Conversation::refuse(const Error& error) {
  flush();
  reply([&](Writer& writer) { write_error(writer, error); });
}

void Conversation::write_error(Writer& writer, const Error& error) {
  std::string text = error.detail;
  if (error.retry_after > Millis::zero())
    text += fmt::format(" (try again in {})", format_duration(error.retry_after));
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\r' || c == '\n'; }, ' ');
  writer.error(traits_of(error.code).resp_prefix, text);
}

}  // namespace delayq::resp
