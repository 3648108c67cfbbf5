#include "cli/importing.h"

#include <algorithm>
#include <istream>
#include <iterator>
#include <memory>
#include <optional>
#include <random>

#include <fmt/format.h>

#include "cli/connection.h"
#include "cli/seeds/seed_job.h"
#include "cli/terminal.h"
#include "core/encoding.h"
#include "core/moment.h"

namespace delayq::cli {

Result<bool> LineReader::next(std::string& line) {
  line.clear();
  std::streambuf* const text = in_.rdbuf();
  using Traits = std::istream::traits_type;
  int c = text->sbumpc();
  if (Traits::eq_int_type(c, Traits::eof())) return false;
  ++number_;
  while (!Traits::eq_int_type(c, Traits::eof())) {
    ++bytes_;
    if (c == '\n') break;
    if (line.size() == most_) {
      return Error{ErrorCode::kTooLarge, {}, fmt::format("the line has more than {} bytes", most_)};
    }
    line += Traits::to_char_type(c);
    c = text->sbumpc();
  }
  if (!line.empty() && line.back() == '\r') line.pop_back();
  return true;
}

namespace {

Error corrupt(std::string detail) { return {ErrorCode::kCorrupt, {}, std::move(detail)}; }

/// The three ways in which a line has a body.
Result<std::string> body_of(const seeds::JsonJob& found) {
  if (found.find("body_text") != nullptr) return found.text("body_text");
  if (found.find("body_base64") != nullptr) {
    std::optional<std::string> bytes = from_base64(found.text("body_base64"));
    if (!bytes) return corrupt("a line's body_base64 is not base64");
    return *std::move(bytes);
  }
  const json::Slice* const body = found.find("body");
  return body == nullptr ? std::string("null") : std::string(body->text);
}

}  // namespace

std::string rule_text(std::string_view every, std::string_view cron, std::string_view zone) {
  return every.empty() ? fmt::format("cron {} {}", cron, zone.empty() ? "UTC" : zone)
                       : fmt::format("every {}", every);
}

namespace {

Result<ExportedLine> read_schedule(const seeds::JsonJob& found) {
  ExportedLine line;
  line.schedule = found.text("schedule");
  if (line.schedule.empty()) return corrupt("a line has a schedule without a name");
  line.topic = found.text("topic");
  if (line.topic.empty()) return line;  // a damaged one, or a mark
  line.rule = rule_text(found.text("every"), found.text("cron"), found.text("zone"));
  if (const json::Slice* const progress = found.find("progress")) {
    const Result<seeds::JsonJob> parts = seeds::JsonJob::parse(progress->text);
    const json::Slice* const moving = parts ? parts->find("moving") : nullptr;
    line.is_moving = moving != nullptr && moving->is_true();
    if (parts) line.made = static_cast<uint64_t>(std::max<int64_t>(parts->number("made").value_or(0), 0));
  }
  Result<std::string> body = body_of(found);
  if (!body) return body.error();
  line.body = std::move(*body);
  return line;
}

}  // namespace

Result<ExportedLine> read_exported(std::string_view text) {
  const Result<seeds::JsonJob> found = seeds::JsonJob::parse(text);
  if (!found) return corrupt("a line is not a JSON object");
  if (found->find("schedule") != nullptr) return read_schedule(*found);
  ExportedLine line;
  line.topic = found->text("topic");
  if (line.topic.empty()) return corrupt("a line has no topic");
  if (found->find("settings") != nullptr) return line;
  line.id = found->text("id");
  if (line.id.empty()) return corrupt("a line has no id");
  const std::string state = found->text("state");
  if (state == "done" || state == "dead") {
    line.kind = state == "done" ? Kind::kDone : Kind::kDead;
    const Result<Moment> until = parse_moment(found->text("kept_until"));
    if (until) line.kept_until = *until;
  } else if (state == "delayed" || state == "ready" || state == "reserved") {
    line.is_running = state == "reserved";
  } else {
    return corrupt("a line has an unknown state");
  }
  Result<std::string> body = body_of(*found);
  if (!body) return body.error();
  line.body = std::move(*body);
  return line;
}

namespace {

/// How many jobs are looked up together.
constexpr size_t kMostKnown = 256;

}  // namespace

Ask one_by_one(AskAll ask_all) {
  return [ask_all = std::move(ask_all)](const Words& command) -> Result<resp::Value> {
    Result<std::vector<resp::Value>> replies = ask_all(std::span(&command, 1));
    if (!replies) return replies.error();
    if (replies->size() != 1) return unexpected_reply();
    if (replies->front().is_error()) return error_of_reply(replies->front().text);
    return std::move(replies->front());
  };
}

Result<Surroundings::Storage> open_storage(const Surroundings& world, const Surroundings::StorageName& name) {
  if (!world.open_storage)
    return Error{ErrorCode::kUnavailable, {}, "this program cannot open where jobs are stored"};
  Result<Surroundings::Storage> opened = world.open_storage(name);
  if (opened) return opened;
  Error error = opened.error();
  error.detail = fmt::format("{}: {}", name.option, error.detail);
  return error;
}

Result<AskAll> ask_where(const Session& session, const std::optional<std::string>& data,
                         Surroundings::Access access) {
  if (data) {
    Result<Surroundings::Storage> opened = open_storage(session.world, {*data, "--data", access});
    if (!opened) return opened.error();
    return AskAll(std::move(opened->ask));
  }
  return AskAll([&session](std::span<const Words> commands) { return session.ask_all(commands); });
}

Result<std::vector<bool>> are_there(const AskAll& ask_all, std::span<const Known> jobs) {
  std::vector<bool> there;
  std::vector<Words> commands;
  while (there.size() < jobs.size()) {
    const auto part = jobs.subspan(there.size(), std::min(kMostKnown, jobs.size() - there.size()));
    commands.clear();
    for (const Known& job : part) commands.push_back({"GET", std::string(job.topic), std::string(job.id)});
    const auto replies = ask_all(commands);
    if (!replies) return replies.error();
    if (replies->size() != part.size()) return unexpected_reply();
    for (size_t i = 0; i < part.size(); ++i) {
      const resp::Value& reply = (*replies)[i];
      if (reply.is_error()) return error_of_reply(reply.text);
      const resp::Value* const body = reply.find("body");
      there.push_back(body != nullptr && body->text == part[i].body);
    }
  }
  return there;
}

Words import_command(std::string_view on_conflict, Words lines) {
  Words command{"IMPORT"};
  if (on_conflict == "keep") command.emplace_back("KEEP");
  if (on_conflict == "replace") command.emplace_back("REPLACE");
  std::move(lines.begin(), lines.end(), std::back_inserter(command));
  return command;
}

Result<std::vector<resp::Value>> import_answers(resp::Value reply, size_t count) {
  if (reply.is_error()) return error_of_reply(reply.text);
  if (reply.items.size() != count) return unexpected_reply();
  return std::move(reply.items);
}

Result<std::vector<resp::Value>> import_lines(const Ask& ask, std::string_view on_conflict, Words lines) {
  const size_t count = lines.size();
  Result<resp::Value> reply = ask(import_command(on_conflict, std::move(lines)));
  if (!reply) return reply.error();
  return import_answers(std::move(*reply), count);
}

std::optional<Error> ImportCounts::add(const resp::Value& answer) {
  ++lines_;
  const auto* const outcome = std::find(kOutcomes.begin(), kOutcomes.end(), answer.text);
  if (outcome != kOutcomes.end() && !answer.is_error()) {
    ++counts_[static_cast<size_t>(outcome - kOutcomes.begin())];
    return std::nullopt;
  }
  Error error = error_of_reply(answer.text);
  if (failed_++ == 0) first_error_ = error.code;
  return error;
}

uint64_t ImportCounts::of(std::string_view outcome) const {
  const auto* const found = std::find(kOutcomes.begin(), kOutcomes.end(), outcome);
  return found == kOutcomes.end() ? 0 : counts_[static_cast<size_t>(found - kOutcomes.begin())];
}

std::string ImportCounts::text() const {
  std::string text;
  for (size_t i = 0; i < kOutcomes.size(); ++i)
    text += fmt::format("{} {}, ", grouped(static_cast<int64_t>(counts_[i])), kOutcomes[i]);
  return text + fmt::format("{} failed", grouped(static_cast<int64_t>(failed_)));
}

std::string ImportCounts::members() const {
  std::string text;
  for (size_t i = 0; i < kOutcomes.size(); ++i) text += fmt::format("\"{}\":{},", kOutcomes[i], counts_[i]);
  return text + fmt::format("\"failed\":{}", failed_);
}

namespace {

constexpr Millis kPlaceConnectPatience = std::chrono::seconds{5};
constexpr Millis kPlaceReplyPatience = std::chrono::minutes{1};

Result<Server> server_of_url(std::string_view option, std::string_view text, bool is_encrypted) {
  Server server;
  if (const size_t sign = text.rfind('@'); sign != std::string_view::npos) {
    server.token = text.substr(0, sign);
    text.remove_prefix(sign + 1);
  }
  while (!text.empty() && text.back() == '/') text.remove_suffix(1);
  const Result<Address> address = parse_address(std::string(text));
  if (!address) return invalid(fmt::format("{}: {}", option, address.error().detail));
  server.address = *address;
  if (is_encrypted) server.tls = Server::Tls{};
  return server;
}

/// A data directory, or a Redis, used without a server.
Result<Place> without_server(const Surroundings& world, const Surroundings::StorageName& storage,
                             std::string name, bool is_exclusive) {
  Result<Surroundings::Storage> opened = open_storage(world, storage);
  if (!opened) return opened.error();
  Place place;
  place.name = std::move(name);
  place.option = storage.option;
  place.is_exclusive = is_exclusive;
  place.is_new = opened->is_new;
  place.shards = opened->shards;
  place.ask = one_by_one(opened->ask);
  place.ask_all = std::move(opened->ask);
  return place;
}

/// A connection that is opened again after an error.
class ServerLine {
 public:
  explicit ServerLine(Server server) : server_(std::move(server)) {}

  Result<std::vector<resp::Value>> ask_all(std::span<const Words> commands) {
    if (commands.empty()) return std::vector<resp::Value>{};
    if (!connection_) {
      Result<Connection> opened = Connection::open(server_, kPlaceConnectPatience);
      if (!opened) return opened.error();
      connection_.emplace(std::move(*opened));
    }
    Result<std::vector<resp::Value>> replies = connection_->ask_all(commands, kPlaceReplyPatience);
    if (!replies) connection_.reset();
    return replies;
  }

 private:
  Server server_;
  std::optional<Connection> connection_;
};

Place open_server(const Server& server, const std::string& option) {
  auto line = std::make_shared<ServerLine>(server);
  Place place;
  place.name = to_string(server.address);
  place.option = option;
  place.ask_all = [line](std::span<const Words> commands) { return line->ask_all(commands); };
  place.ask = one_by_one(place.ask_all);
  return place;
}

Error not_a_place(std::string_view option, const std::string& text, std::string_view scheme) {
  const bool is_http = scheme == "http" || scheme == "https";
  if (scheme.empty() && text.find_first_of(":@") == std::string::npos && !text.empty()) {
    return invalid(
        fmt::format("{}: a directory is written with a /: ./{} is right, if it is one; servers and Redises "
                    "are delayq://HOST:PORT and redis://HOST:PORT",
                    option, text));
  }
  return invalid(
      fmt::format("{}: {}expected delayq://HOST:PORT, a server's port for RESP (delayqs:// over TLS), "
                  "redis://HOST:PORT, the redis engine's Redis, or a data directory with a / in it",
                  option,
                  is_http ? "a server is reached at its port for RESP, 9278 unless server.resp says "
                            "otherwise, not over HTTP; "
                          : ""));
}

/// The URL without user, password and query.
std::string without_secrets(std::string_view url) {
  const size_t begin = url.find("://") + 3;
  const size_t sign = url.rfind('@');
  std::string shown(url.substr(0, begin));
  shown += url.substr(sign == std::string_view::npos ? begin : sign + 1);
  return shown;
}

/// Errors of connections give advice about options of other verbs; here these are parts of a URL.
void in_words_of_a_url(std::string& detail) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"leave --tls out, or name", "begin with delayq://, or name"},
      {"If it speaks TLS there, use --tls", "If it speaks TLS there, begin with delayqs://"},
      {"the token (--token, $DELAYQ_TOKEN)", "the token of delayq://TOKEN@HOST:PORT"},
  };
  for (const auto& [options, url] : kWords) {
    if (const size_t place = detail.find(options); place != std::string::npos)
      detail.replace(place, options.size(), url);
  }
}

}  // namespace

Error in_place(const Place& place, Error error) {
  std::string& detail = error.detail;
  in_words_of_a_url(detail);
  const auto has = [&detail](std::string_view part) { return detail.find(part) != std::string::npos; };
  if (detail.starts_with("unknown command 'TOPICS'")) {
    detail = fmt::format("{0} is no delayq but a Redis, as it seems: redis://{0} names the redis engine's",
                         place.name);
  } else if (has("does not speak RESP")) {
    detail += "; a server is reached at its port for RESP, 9278 unless server.resp says otherwise";
  }
  if (error.code == ErrorCode::kUnauthorized) {
    error.op = "place";  // so that no advice about options is added to a server's error
    if (!has("TOKEN@")) detail += "; use delayq://TOKEN@HOST:PORT to authenticate";
  }
  if (!has(place.name)) detail = fmt::format("{}: {}", place.name, detail);
  if (!place.option.empty()) detail = fmt::format("{}: {}", place.option, detail);
  return error;
}

Result<Place> open_place(const Surroundings& world, const std::string& option, const std::string& text,
                         Surroundings::Access access) {
  const Surroundings::StorageName storage{text, option, access};
  const size_t colon = text.find("://");
  const std::string scheme = colon == std::string::npos ? std::string() : text.substr(0, colon);
  if (scheme.empty() && text.find('/') != std::string::npos)
    return without_server(world, storage, text, true);
  if (scheme.starts_with("redis")) return without_server(world, storage, without_secrets(text), false);
  if (scheme != "delayq" && scheme != "delayqs") return not_a_place(option, text, scheme);
  const Result<Server> server =
      server_of_url(option, std::string_view(text).substr(colon + 3), scheme == "delayqs");
  if (!server) return server.error();
  return open_server(*server, option);
}

Status check_apart(const Place& from, const Place& to, const std::string& topic) {
  std::random_device random;
  const std::string id = fmt::format("delayq-migrate-{:08x}{:08x}", random(), random());
  // Due far in the future: if this program is killed here, no consumer gets the job.
  const Result<resp::Value> stored = to.ask({"PUSH", topic, "36500d", "", "ID", id});
  if (!stored) return in_place(to, stored.error());
  const Result<resp::Value> found = from.ask({"GET", topic, id});
  const Result<resp::Value> removed = to.ask({"CANCEL", topic, id});
  if (!found) return in_place(from, found.error());
  if (!removed) return in_place(to, removed.error());
  if (found->find("body") == nullptr) return {};
  return invalid(fmt::format("--to: {} has the same jobs as {}: it is the same place", to.name, from.name));
}

Result<std::map<std::string, TopicCounts>> count_topics(const Ask& ask) {
  std::map<std::string, TopicCounts> topics;
  Words command{"TOPICS"};
  for (;;) {
    const Result<resp::Value> reply = ask(command);
    if (!reply) return reply.error();
    if (reply->items.size() != 2) return unexpected_reply();
    for (const resp::Value& row : reply->items[1].items) {
      if (row.items.size() <= TopicCounts::kStates.size()) return unexpected_reply();
      TopicCounts& counts = topics[row.items[0].text];
      for (size_t i = 0; i < counts.states.size(); ++i)
        counts.states[i] = static_cast<uint64_t>(number_in(row.items[i + 1]).value_or(0));
    }
    const std::string& cursor = reply->items[0].text;
    if (cursor.empty()) return topics;
    command = {"TOPICS", cursor};
  }
}

}  // namespace delayq::cli
