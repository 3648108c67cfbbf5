#include "api/resp/conversation.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/duration.h"
#include "core/quote.h"

namespace delayq::resp {

namespace {

constexpr size_t kMostUnanswered = 16 * 1024;

/// The name of the error that a reply is; empty: it is none.
std::string_view code_in(std::string_view reply) {
  if (!reply.starts_with('-')) return {};
  const std::string_view prefix = reply.substr(1, reply.find_first_of(" \r") - 1);
  const auto* const found = std::find_if(kErrorTable.begin(), kErrorTable.end(),
                                         [prefix](const auto& row) { return row.resp_prefix == prefix; });
  return found == kErrorTable.end() ? prefix : found->name;
}

}  // namespace

Conversation::Conversation(Host& host, net::Connection& connection, CommandLimits limits)
    : api::Conversation(host.queue, host.clock, *host.front, connection, kMostUnanswered),
      host_(host),
      parser_(limits),
      id_(++host.last_id) {}

size_t Conversation::read(std::string_view input) {
  now_ = host_.clock();
  needed_ = 1;
  const Queue::InOrder guard = in_order();
  size_t taken = 0;
  while (wants_input()) {
    const std::string_view rest = input.substr(taken);
    const CommandParser::Outcome outcome = parser_.next(rest);
    if (outcome == CommandParser::Outcome::kPartial) {
      needed_ = parser_.needed();
      break;
    }
    if (outcome == CommandParser::Outcome::kBroken) {
      flush();
      // Redis says it this way, and its clients know it.
      reply([&](Writer& writer) { writer.error("ERR", "Protocol error: " + parser_.error()); });
      is_over_ = true;
      return input.size();
    }
    if (!continues_batch(parser_.arguments())) {
      flush();
      if (!wants_input()) break;  // it comes again when the verb before it has taken effect
    }
    taken += parser_.consumed();
    ++requests_;
    execute(parser_.arguments());
    // The words of a line may lie in the parser itself, which forgets them with the next command.
    if (rest[0] != '*') flush();
  }
  flush();
  return taken;
}

void Conversation::time_out() {
  reply(
      [](Writer& writer) { writer.error("ERR", "Protocol error: the command did not come whole in time"); });
  is_over_ = true;
}

void Conversation::execute(std::span<const std::string_view> words) {
  if (words.empty()) return;
  const Place place = next_place_++;
  const CommandSpec* spec = find_command(words[0]);
  if (spec == nullptr) {
    return refuse(
        invalid(fmt::format("unknown command {}; COMMAND LIST tells which there are", quote(words[0]))));
  }
  const size_t count = words.size() - 1;
  if (count < spec->min_arguments || count > spec->max_arguments) {
    return refuse(
        invalid(fmt::format("wrong number of arguments for {}; usage: {}", spec->name, spec->usage)));
  }
  Arguments arguments(words.subspan(1));
  if (front_.tells_commands && front_.served != nullptr) note_asked(place, *spec, words);
  Status status = admit(*spec, arguments);
  if (status.ok()) status = dispatch(spec->verb, arguments);
  if (status.ok() && !arguments.empty()) status = arguments.unexpected(spec->usage);
  if (status.ok()) return;
  tell_if_turned_away(about_command(*spec, words), status.error());
  refuse(status.error());
}

/// What a command says is nobody's business, but for its topic.
Served Conversation::about_command(const CommandSpec& spec, std::span<const std::string_view> words) const {
  Served served = about("resp", spec.name);
  const bool has_topic = spec.topics == Topics::kFirst || spec.topics == Topics::kFirstOfTwo ||
                         spec.topics == Topics::kFirstIfAny || spec.verb == Verb::kPop;
  if (has_topic && words.size() > 1) served.target = words[1];
  return served;
}

void Conversation::note_asked(Place place, const CommandSpec& spec, std::span<const std::string_view> words) {
  const Served served = about_command(spec, words);
  Asked asked;
  asked.verb = spec.name;
  asked.peer = served.peer;
  asked.target = served.target;
  asked.token = served.token;
  asked.begun = front_.stopwatch();
  asked.may_wait = spec.verb == Verb::kPop;
  for (const std::string_view word : words.subspan(1)) asked.bytes_in += word.size();
  asked_[place] = std::move(asked);
}

void Conversation::tell(const Asked& asked, std::string_view reply) const {
  Served served = about("resp", asked.verb);
  served.peer = asked.peer;
  served.token = asked.token;
  served.target = asked.target;
  served.code = code_in(reply);
  served.bytes_in = asked.bytes_in;
  served.bytes_out = reply.size();
  served.took = std::chrono::duration_cast<std::chrono::microseconds>(front_.stopwatch() - asked.begun);
  served.may_wait = asked.may_wait;
  front_.served(served);
}

Status Conversation::admit(const CommandSpec& spec, const Arguments& arguments) {
  ++front_.resp.requests;
  const api::Access& access = front_.access;
  if (access.is_open() || spec.scopes == kForEverybody) return {};
  if (Status status = access.count_request(caller_, now_); !status.ok()) return status;
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
  flush();
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
    case Verb::kExport:
      return export_page(arguments);
    case Verb::kImport:
      return import_lines(arguments);
    case Verb::kBackup:
      return backup(arguments);
    case Verb::kCancelGroup:
      host_.queue.cancel_group(
          now_, arguments.take(),
          respond<GroupCancelAnswer>([](Writer& writer, const GroupCancelAnswer& answer) {
            writer.integer(static_cast<int64_t>(answer.cancelled + answer.reserved));
          }));
      return {};
    case Verb::kPause:
      host_.queue.pause(now_, arguments.take(), respond<void>([](Writer& writer) { writer.simple("OK"); }));
      return {};
    case Verb::kResume:
      host_.queue.resume(now_, arguments.take(), respond<void>([](Writer& writer) { writer.simple("OK"); }));
      return {};
    default:
      return greet(verb, arguments);
  }
}

void Conversation::answer(Place place, Words words) {
  const auto write = [&](std::string& out) {
    const size_t begin = out.size();
    Writer writer(out, version_);
    words(writer);
    if (asked_.empty()) return;
    const auto asked = asked_.find(place);
    if (asked == asked_.end()) return;
    tell(asked->second, std::string_view(out).substr(begin));
    asked_.erase(asked);
  };
  if (connection_ == nullptr) {
    std::string unheard;
    if (!asked_.empty()) write(unheard);
    return;
  }
  replies_.fill(place, write);
  connection_->on_output();
}

void Conversation::reply(Words words) { answer(replies_.reserve(), words); }

void Conversation::refuse(const Error& error) {
  flush();
  front_.resp.refuse(error.code);
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
