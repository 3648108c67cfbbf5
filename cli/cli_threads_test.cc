// The verbs over a real socket, against a server of a few lines.
#include <sstream>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/cli.h"
#include "cli/connection.h"
#include "resp/command_parser.h"
#include "tests/support/loopback_listener.h"

namespace delayq::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// Takes one client and gives the same bytes for each command; then closes.
class FakeServer {
 public:
  FakeServer(std::string reply, int commands) {
    thread_ = std::thread([this, reply = std::move(reply), commands] { serve(reply, commands); });
  }
  ~FakeServer() { thread_.join(); }

  uint16_t port() const { return listener_.port(); }
  std::string address() const { return "127.0.0.1:" + std::to_string(port()); }

 private:
  void serve(const std::string& reply, int commands) const {
    const int client = listener_.accept();
    if (client < 0) return;
    std::string input;
    resp::CommandParser parser;
    while (commands > 0) {
      char bytes[4096];
      const ssize_t got = recv(client, bytes, sizeof bytes, 0);
      if (got <= 0) break;
      input.append(bytes, static_cast<size_t>(got));
      if (parser.next(input) != resp::CommandParser::Outcome::kCommand) continue;
      input.erase(0, parser.consumed());
      --commands;
      if (send(client, reply.data(), reply.size(), MSG_NOSIGNAL) < 0) break;
    }
    close(client);
  }

  support::LoopbackListener listener_;
  std::thread thread_;
};

struct Outcome {
  std::optional<int> exit_code;
  std::string out, err;
};

Outcome run(const std::vector<std::string>& arguments, const char* variable = nullptr) {
  CLI::App app;
  Commands commands(app);
  parse(app, arguments);
  std::istringstream in;
  std::ostringstream out;
  std::ostringstream err;
  const Surroundings world{.in = in,
                           .out = out,
                           .err = err,
                           .now = [] { return Moment{}; },
                           .variable =
                               [variable](const char* name) {
                                 return std::string_view(name) == "DELAYQ_RESP" ? variable : nullptr;
                               }};
  const std::optional<int> exit_code = commands.run(world);
  return {exit_code, out.str(), err.str()};
}

TEST(Cli, speaks_to_a_server) {
  const FakeServer server("*4\r\n$6\r\nresult\r\n$7\r\ncreated\r\n$2\r\nid\r\n$1\r\n7\r\n", 1);
  const Outcome outcome = run({"push", "order", "30m", "x", "--resp", server.address()});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "{\"topic\":\"order\",\"result\":\"created\",\"id\":\"7\"}\n");
}

TEST(Cli, finds_the_server_by_the_environment) {
  const FakeServer server("-CONFLICT id \"7\" is already delayed\r\n", 1);
  const Outcome outcome = run({"push", "order", "30m", "x"}, server.address().c_str());
  EXPECT_EQ(outcome.exit_code, traits_of(ErrorCode::kConflict).exit_code);
  EXPECT_EQ(outcome.err, "delayq push: conflict: --id \"7\" is already delayed\n");
}

TEST(Cli, tells_what_to_do_when_nobody_listens) {
  uint16_t port = 0;
  {
    const FakeServer server("", 0);
    port = server.port();
    EXPECT_TRUE(Connection::open(Address{"127.0.0.1", port}, std::chrono::seconds{10}));
  }
  const std::string address = "127.0.0.1:" + std::to_string(port);
  const Outcome outcome = run({"stats", "--resp", address});
  EXPECT_EQ(outcome.exit_code, traits_of(ErrorCode::kUnavailable).exit_code);
  EXPECT_EQ(outcome.err, "delayq stats: unavailable: could not connect to " + address +
                             ": connection refused. Is the server running? Start one with: delayq serve\n");
}

TEST(Cli, tells_that_a_server_went_away_or_is_another_one) {
  {
    const FakeServer server("", 1);
    EXPECT_THAT(run({"topics", "--resp", server.address()}).err,
                HasSubstr("closed the connection without an answer"));
  }
  const FakeServer server("HTTP/1.1 400 Bad Request\r\n\r\n", 1);
  EXPECT_THAT(run({"topics", "--resp", server.address()}).err,
              HasSubstr("speaks HTTP; name the port of RESP"));
}

TEST(Cli, refuses_an_address_before_it_connects) {
  const Outcome outcome = run({"topics", "--resp", "no where"});
  EXPECT_EQ(outcome.exit_code, traits_of(ErrorCode::kInvalid).exit_code);
  EXPECT_THAT(outcome.err,
              StartsWith("delayq topics: invalid: --server: \"no where:9278\" is not an address"));
}

TEST(Cli, takes_topics_that_are_named_like_verbs) {
  const FakeServer server("+OK\r\n", 1);
  EXPECT_EQ(run({"pause", "stats", "--resp", server.address()}).out, "{\"result\":\"ok\"}\n");
}

TEST(Cli, leaves_other_words_to_others) {
  CLI::App app;
  app.add_subcommand("serve");
  Commands commands(app);
  std::vector<std::string> arguments{"serve"};
  app.parse(arguments);
  EXPECT_EQ(commands.run(process_surroundings()), std::nullopt);
}

TEST(Cli, says_who_it_is_before_it_asks) {
  const FakeServer server("+OK\r\n", 2);
  const Outcome outcome = run({"pause", "order", "--server", server.address(), "--token", "dq_x"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

TEST(Cli, tells_that_its_token_is_refused) {
  const FakeServer server("-NOAUTH no such token\r\n", 2);
  const Outcome outcome = run({"pause", "order", "--server", server.address(), "--token", "dq_x"});
  EXPECT_EQ(outcome.exit_code, traits_of(ErrorCode::kUnauthorized).exit_code);
  EXPECT_EQ(outcome.err, "delayq pause: unauthorized: " + server.address() +
                             " refuses the token (--token, $DELAYQ_TOKEN): no such token\n");
}

TEST(Cli, tells_that_a_token_is_missing) {
  const FakeServer server("-NOAUTH who are you?\r\n", 1);
  EXPECT_EQ(run({"pause", "order", "--server", server.address()}).err,
            "delayq pause: unauthorized: who are you?. Give a token with --token or in DELAYQ_TOKEN\n");
}

TEST(CliConnection, gives_up_at_its_deadline) {
  // Two commands, so that the server keeps the connection open after half an answer to the first.
  const FakeServer server("$5\r\nhal", 2);
  Result<Connection> connection =
      Connection::open(Address{"127.0.0.1", server.port()}, std::chrono::seconds{10});
  ASSERT_TRUE(connection);
  const std::vector<std::string_view> command{"PING"};
  const Result<resp::Value> reply = connection->ask(command, Millis{50});
  ASSERT_FALSE(reply);
  EXPECT_THAT(reply.error().detail, HasSubstr("within 50ms"));
  { const Connection gone = std::move(*connection); }
}

TEST(CliConnection, takes_large_replies_one_after_the_other) {
  const std::string body(3'000'000, 'x');
  const FakeServer server("$3000000\r\n" + body + "\r\n", 2);
  Result<Connection> connection =
      Connection::open(Address{"127.0.0.1", server.port()}, std::chrono::seconds{10});
  ASSERT_TRUE(connection);
  const std::vector<std::string_view> command{"GET", "a", "b"};
  for (int i = 0; i < 2; ++i) {
    const Result<resp::Value> reply = connection->ask(command, std::chrono::seconds{10});
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->text.size(), body.size());
  }
}

}  // namespace
}  // namespace delayq::cli
