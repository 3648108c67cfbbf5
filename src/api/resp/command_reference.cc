#include <fmt/format.h>

#include "api/resp/command_table.h"
#include "core/error.h"

namespace delayq::resp {

namespace {

constexpr std::string_view kHead = R"(# RESP
Every Redis client is a client: `redis-cli -p 9278 PUSH order 30m '{"uid":1}' ID order:1`. RESP2, and RESP3 after `HELLO 3`.
This page is written by `api/resp/command_reference.cc` from the command table and the error table, and a test compares them.

- Pipelining is the fast path: commands of one kind that arrive together are one batch, with one commit. Replies come in the
  order of the commands. A reply to a command that changes something means that the change is on disk (`durability = "commit"`).
- Commands of one connection take effect in their order. A `POP` with `WAIT` holds up what comes behind it on its own connection, and
  nobody else; so does, until it has taken effect, a command that needs several steps: `NACK`, `PURGE`, `REDRIVE`, `CANCELGROUP`, `EXPORT`,
  `TOPICS`, `STATS`, a `POP` of several topics, `GET` and `CANCEL` by id alone.
- `COUNT` is a maximum. When bodies are large, fewer jobs come although more are ready: a reply has at least one job, and no further
  one once it has 8 MiB. Pop again for the rest.
- A delay, wait or lease is "250ms", "30s", "1h30m", "7d", or a bare number of seconds; a moment is RFC 3339 or Unix seconds. With
  `AT` the delay is 0.
- Capitals do not matter in names of commands and options. In `POP`, the first word is a topic even if it looks like an option.
- A lease is an opaque text. `ACK` counts the leases that were current; the others had run out, or were acked before.
- Lengths above the limits are refused before anything is kept for them. A client that does not take its replies is read no
  further while a megabyte of them waits, and closed when it took nothing for 30 seconds. Before `AUTH`, where tokens are configured, a
  command has at most 16 KiB.
- A line that looks like HTTP (`POST ...`, `Host: ...`, `GET / HTTP/1.1`) closes the connection, and nothing behind it is read: a web
  page can make a browser send such lines to any port.

## MULTI and EXEC
`MULTI` keeps the commands that follow, `EXEC` carries them out in their order and answers an array of their replies, `DISCARD` forgets
them: what redis-py's `pipeline()` and other clients' `multi()` send. At most 10,000 commands, and as many bytes as one command may have.

- Nothing runs before `EXEC`. When a command was refused as it was kept (unknown, a wrong number of arguments, not for this token, too
  many), `EXEC` answers `-EXECABORT` and nothing has run. `AUTH`, `HELLO` and `MULTI` cannot be kept.
- What is wrong with a command otherwise (a delay that is none, an id that is taken) is its own reply in the array; the others run all the same.
- It is a batch, not a transaction: nothing is rolled back; commands of other connections may run in between; a crash, or a client that is
  gone, may leave the first commands done and the rest not. Consecutive commands of one kind are one commit, as in any pipeline.
- A `POP` in it does not wait. There is no `WATCH`.

## Commands
| command | what |
|---|---|
)";

constexpr std::string_view kErrors = R"(
## Errors
`-CODE what is wrong and what would be right`. Bytes that are no command at all get `-ERR Protocol error: ...`, and the connection is
closed. Exit codes are those of the `delayq` command.

| code | name | exit code | the same again may succeed later |
|---|---|---|---|
)";

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

std::string command_reference() {
  std::string out(kHead);
  for (const CommandSpec& spec : all_commands()) {
    out += fmt::format("| `{}` | {} |\n", escaped(spec.usage), escaped(spec.summary));
  }
  out += kErrors;
  for (const ErrorTraits& traits : kErrorTable) {
    out += fmt::format("| `{}` | `{}` | {} | {} |\n", traits.resp_prefix, traits.name, traits.exit_code,
                       traits.retryable ? "yes" : "no");
  }
  return out;
}

}  // namespace delayq::resp
