// The commands that Redis clients send when they connect, and those about the server.
#include <charconv>

#include <fmt/format.h>

#include "api/resp/conversation.h"
#include "core/text.h"

namespace delayq::resp {

namespace {

/// The version of Redis whose protocol this is: some clients look for one in INFO and HELLO.
constexpr std::string_view kRedisVersion = "7.0.0";

void write_name(Writer& writer, const CommandSpec& spec) { writer.bulk(lowered(spec.name)); }

/// As Redis describes a command: name, arity, flags, first key, last key, step, categories, ...
void write_command(Writer& writer, const CommandSpec& spec) {
  const bool is_fixed = spec.min_arguments == spec.max_arguments;
  const int64_t least = int64_t{spec.min_arguments} + 1;
  writer.array(10);
  write_name(writer, spec);
  writer.integer(is_fixed ? least : -least);
  writer.array(1);
  writer.simple(spec.writes ? "write" : "readonly");
  for (int i = 0; i < 3; ++i) writer.integer(0);  // no keys: a cluster client has nothing to route by
  for (int i = 0; i < 4; ++i) writer.array(0);
}

void write_docs(Writer& writer, const CommandSpec& spec) {
  write_name(writer, spec);
  writer.map(4);
  writer.bulk("summary");
  writer.bulk(fmt::format("{} {}", spec.usage, spec.summary));
  writer.bulk("since");
  writer.bulk("1.0.0");
  writer.bulk("group");
  writer.bulk("delayq");
  writer.bulk("complexity");
  writer.bulk("O(1) or O(log n) per job");
}

}  // namespace

Status Conversation::greet(Verb verb, Arguments& arguments) {
  switch (verb) {
    case Verb::kPing:
      if (arguments.empty()) {
        reply([](Writer& writer) { writer.simple("PONG"); });
        return {};
      }
      [[fallthrough]];
    case Verb::kEcho:
      reply([text = arguments.take()](Writer& writer) { writer.bulk(text); });
      return {};
    case Verb::kAuth: {
      const std::string_view name = arguments.size() > 1 ? arguments.take() : std::string_view();
      Status status = authenticate(name, arguments.take());
      if (status.ok()) reply([](Writer& writer) { writer.simple("OK"); });
      return status;
    }
    case Verb::kHello:
      return hello(arguments);
    case Verb::kInfo:
      while (!arguments.empty()) arguments.take();  // always returns all sections
      info();
      return {};
    case Verb::kServer:
      about_server();
      return {};
    case Verb::kConsumers:
      return consumers(arguments);
    case Verb::kForecast:
      return forecast(arguments);
    case Verb::kReady:
      host_.queue.ready(now_, respond<void>([](Writer& writer) { writer.simple("OK"); }));
      return {};
    case Verb::kCommand:
      return command(arguments);
    case Verb::kClient:
      return client(arguments);
    case Verb::kConfig:
      while (!arguments.empty()) arguments.take();
      reply([](Writer& writer) { writer.map(0); });
      return {};
    case Verb::kSelect:
      return select(arguments);
    case Verb::kReset:
      transaction_.reset();
      set_version(Version::k2);
      news_.reset();
      name_.clear();
      caller_ = {};
      reply([](Writer& writer) { writer.simple("RESET"); });
      return {};
    default:
      reply([](Writer& writer) { writer.simple("OK"); });
      is_over_ = true;
      return {};
  }
}

Status Conversation::authenticate(std::string_view name, std::string_view secret) {
  if (front_.access.is_open())
    return invalid("no tokens are configured, so there is nothing to authenticate for");
  caller_ = front_.access.identify(secret);
  // "default" is the name that Redis clients send when they have none.
  if (!name.empty() && name != "default" && name != caller_.name()) caller_ = {};
  return front_.access.check_scope(caller_, kAnyScope);
}

Status Conversation::hello(Arguments& arguments) {
  Version version = version_;
  if (!arguments.empty()) {
    const std::string_view wanted = arguments.take();
    if (wanted != "2" && wanted != "3") {
      reply([](Writer& writer) { writer.error("NOPROTO", "this server speaks RESP 2 and 3"); });
      while (!arguments.empty()) arguments.take();
      return {};
    }
    version = wanted == "3" ? Version::k3 : Version::k2;
  }
  while (!arguments.empty()) {
    if (arguments.take_word("SETNAME")) {
      const Result<std::string_view> name = arguments.text("SETNAME");
      if (!name.ok()) return name.error();
      name_ = *name;
    } else if (arguments.take_word("AUTH")) {
      const Result<std::string_view> name = arguments.text("AUTH");
      const Result<std::string_view> secret = arguments.text("AUTH");
      if (!name.ok() || !secret.ok()) return invalid("AUTH", "AUTH: a name and a token are needed behind it");
      if (Status status = authenticate(*name, *secret); !status.ok()) return status;
    } else {
      return {};
    }
  }
  // An unknown client does not learn anything about the server.
  if (Status status = front_.access.check_scope(caller_, kAnyScope); !status.ok()) return status;
  set_version(version);
  if (version == Version::k2) news_.reset();  // there are no push messages in it
  reply([this](Writer& writer) {
    writer.map(7);
    writer.bulk("server");
    writer.bulk("delayq");
    writer.bulk("version");
    writer.bulk(host_.version);
    writer.bulk("proto");
    writer.integer(version_ == Version::k3 ? 3 : 2);
    writer.bulk("id");
    writer.integer(static_cast<int64_t>(id_));
    writer.bulk("mode");
    writer.bulk("standalone");
    writer.bulk("role");
    writer.bulk("master");
    writer.bulk("modules");
    writer.array(0);
  });
  return {};
}

void Conversation::info() {
  host_.queue.totals(
      now_, respond<TotalStats>([this, caller = caller_](Writer& writer, const TotalStats& stats) {
        std::string text = fmt::format(
            "# "
            "Server\r\nredis_version:{}\r\nserver_name:delayq\r\ndelayq_version:{}\r\nredis_mode:"
            "standalone\r\n"
            "uptime_in_seconds:{}\r\n\r\n# Clients\r\nconnected_clients:{}\r\nblocked_clients:{}\r\n\r\n"
            "# Memory\r\nused_memory:{}\r\n\r\n# Persistence\r\nloading:0\r\n\r\n"
            "# Replication\r\nrole:master\r\nconnected_slaves:0\r\n",
            kRedisVersion, host_.version,
            std::chrono::duration_cast<std::chrono::seconds>(now_ - host_.started).count(),
            host_.connections ? host_.connections() : 0, stats.waiters, stats.usage.memory_bytes);
        // For a token of some topics, STATS and TOPICS have the figures of these.
        const bool sees_all = front_.access.covers_all(caller);
        if (sees_all) text += "\r\n# Jobs\r\n";
        for (size_t i = 0; sees_all && i < kJobStateCount; ++i) {
          text += fmt::format("{}:{}\r\n", name_of(static_cast<JobState>(i)), stats.counts.by_state[i]);
        }
        writer.bulk(text);
      }));
}

Status Conversation::command(Arguments& arguments) {
  const std::string_view what = arguments.empty() ? std::string_view() : arguments.take();
  if ((same_word(what, "COUNT") || same_word(what, "LIST")) && !arguments.empty())
    return {};  // not understood
  if (what.empty() || (same_word(what, "INFO") && arguments.empty())) {
    reply([](Writer& writer) {
      writer.array(all_commands().size());
      for (const CommandSpec& spec : all_commands()) write_command(writer, spec);
    });
  } else if (same_word(what, "COUNT")) {
    reply([](Writer& writer) { writer.integer(static_cast<int64_t>(all_commands().size())); });
  } else if (same_word(what, "LIST")) {
    reply([](Writer& writer) {
      writer.array(all_commands().size());
      for (const CommandSpec& spec : all_commands()) write_name(writer, spec);
    });
  } else if (same_word(what, "INFO")) {
    reply([&](Writer& writer) {
      writer.array(arguments.size());
      while (!arguments.empty()) {
        const CommandSpec* spec = find_command(arguments.take());
        if (spec == nullptr) {
          writer.null();
        } else {
          write_command(writer, *spec);
        }
      }
    });
  } else if (same_word(what, "DOCS")) {
    std::vector<const CommandSpec*> specs;
    const bool all = arguments.empty();
    while (!arguments.empty()) {
      if (const CommandSpec* spec = find_command(arguments.take())) specs.push_back(spec);
    }
    for (size_t i = 0; all && i < all_commands().size(); ++i) specs.push_back(&all_commands()[i]);
    reply([&](Writer& writer) {
      writer.map(specs.size());
      for (const CommandSpec* spec : specs) write_docs(writer, *spec);
    });
  } else {
    return invalid(fmt::format("COMMAND {} is not understood", quote(what)));
  }
  return {};
}

Status Conversation::client(Arguments& arguments) {
  const std::string_view what = arguments.take();
  const bool needs_none = same_word(what, "ID") || same_word(what, "GETNAME");
  const bool needs_one = same_word(what, "SETNAME");
  if ((needs_none && !arguments.empty()) || (needs_one && arguments.size() > 1)) return {};  // not understood
  if (same_word(what, "ID")) {
    reply([this](Writer& writer) { writer.integer(static_cast<int64_t>(id_)); });
  } else if (same_word(what, "GETNAME")) {
    reply([this](Writer& writer) { name_.empty() ? writer.null() : writer.bulk(name_); });
  } else if (same_word(what, "SETNAME")) {
    const Result<std::string_view> name = arguments.text("SETNAME");
    if (!name.ok()) return name.error();
    name_ = *name;
    reply([](Writer& writer) { writer.simple("OK"); });
  } else if (same_word(what, "SETINFO") || same_word(what, "NO-EVICT") || same_word(what, "NO-TOUCH")) {
    while (!arguments.empty()) arguments.take();
    reply([](Writer& writer) { writer.simple("OK"); });
  } else {
    return invalid(
        fmt::format("CLIENT {} is not understood; there are ID, GETNAME, SETNAME, SETINFO", quote(what)));
  }
  return {};
}

Status Conversation::select(Arguments& arguments) {
  const std::string_view number = arguments.take();
  if (number != "0") return invalid(fmt::format("there is one database, 0, not {}", quote(number)));
  reply([](Writer& writer) { writer.simple("OK"); });
  return {};
}

}  // namespace delayq::resp
