// Sessions over real sockets, client and server on one thread: nothing sleeps, everything has a deadline.
#include "net/session.h"

#include <chrono>
#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>
#include <netinet/in.h>

#include "net/listener.h"
#include "tests/support/identity.h"

namespace delayq::net {
namespace {

using std::chrono::steady_clock;

/// Answers each line with the line, once let go.
class Echo final : public Protocol {
 public:
  explicit Echo(Connection& connection) : connection_(connection) {}

  size_t read(std::string_view input) override {
    const size_t end = input.rfind('\n');
    if (end == std::string_view::npos) return 0;
    output_ += input.substr(0, end + 1);
    bytes_read += end + 1;
    ++requests_;
    is_over_ = output_.ends_with("quit\n");
    connection_.on_output();
    return end + 1;
  }
  size_t needed() const override { return 1; }
  uint64_t requests() const override { return requests_; }
  bool wants_input() const override { return !is_holding && connection_.may_hold(held()); }
  bool will_want_input() const override { return !is_holding; }
  size_t held() const override { return output_.size(); }
  void time_out() override {
    output_ += "too late\n";
    is_over_ = true;
    ++timed_out;
  }
  bool is_over() const override { return is_over_; }
  std::string& output() override { return output_; }
  bool end_input() override {
    is_over_ = true;
    return false;
  }
  void hang_up() override { hung_up = true; }

  void let_go() {
    is_holding = false;
    connection_.on_resume();
  }

  bool is_holding = false;
  bool hung_up = false;
  int timed_out = 0;
  size_t bytes_read = 0;

 private:
  Connection& connection_;
  std::string output_;
  uint64_t requests_ = 0;
  bool is_over_ = false;
};

class Client {
 public:
  explicit Client(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  ~Client() { close(); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void send(std::string_view text) const {
    EXPECT_EQ(::send(socket_, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  /// Sends as much as the other side lets it.
  size_t push(std::string_view text) const {
    const ssize_t count = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return count > 0 ? static_cast<size_t>(count) : 0;
  }
  void receive() {
    char buffer[65536];
    const ssize_t count = ::recv(socket_, buffer, sizeof buffer, MSG_DONTWAIT);
    if (count > 0) received.append(buffer, static_cast<size_t>(count));
    if (count == 0 || (count < 0 && errno == ECONNRESET)) is_closed = true;
  }
  void close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }
  void end_output() const { ::shutdown(socket_, SHUT_WR); }

  std::string received;
  bool is_closed = false;

 private:
  int socket_;
};

class SessionTest : public testing::Test {
 protected:
  void listen(SessionLimits limits = {}, size_t max_sessions = 100) {
    Listener::Options options;
    options.host = "127.0.0.1";
    options.max_sessions = max_sessions;
    options.refusal = "full\n";
    options.session = limits;
    options.tls = tls;
    auto opened = Listener::open(loop, options, [this](Connection& connection) {
      auto echo = std::make_shared<Echo>(connection);
      echoes.push_back(echo);
      return echo;
    });
    ASSERT_TRUE(opened.ok()) << to_string(opened.error());
    listener = std::move(*opened);
  }

  template <class Condition>
  void run_until(Condition condition) {
    const auto deadline = steady_clock::now() + std::chrono::seconds{20};
    while (!condition()) {
      ASSERT_LT(steady_clock::now(), deadline) << "it never happened";
      loop.wait_until(Loop::now() + Millis{1});
      loop.finish_turn();
    }
  }
  void expect(Client& client, std::string_view text) {
    run_until([&] {
      client.receive();
      return client.received == text || client.is_closed;
    });
    EXPECT_EQ(client.received, text);
  }

  /// With a certificate that nobody looks at.
  void use_tls() {
    const support::Identity identity("DNS:localhost");
    auto opened = TlsContext::open({identity.file(), identity.file(), {}});
    ASSERT_TRUE(opened.ok()) << to_string(opened.error());
    tls = std::move(*opened);
  }

  Loop loop;
  std::shared_ptr<const TlsContext> tls;
  std::vector<std::shared_ptr<Echo>> echoes;
  std::unique_ptr<Listener> listener;
};

TEST_F(SessionTest, what_is_said_is_answered) {
  listen();
  Client a(listener->port());
  Client b(listener->port());
  a.send("one\ntwo\nhal");
  b.send("other\n");
  expect(a, "one\ntwo\n");
  expect(b, "other\n");
  a.send("f\n");
  expect(a, "one\ntwo\nhalf\n");
}

TEST_F(SessionTest, a_long_line_that_comes_in_pieces_is_kept_together) {
  listen();
  Client client(listener->port());
  const std::string line(3'000'000, 'x');
  size_t sent = 0;
  run_until([&] {
    sent += client.push(std::string_view(line).substr(sent));
    return sent == line.size();
  });
  client.send("\n");
  run_until([&] {
    client.receive();
    return client.received.size() == line.size() + 1;
  });
}

TEST_F(SessionTest, one_that_wants_no_input_is_read_later_and_then_in_order) {
  listen();
  Client client(listener->port());
  client.send("a\n");
  expect(client, "a\n");
  echoes[0]->is_holding = true;
  client.send("b\n");
  client.send("c\n");
  Client other(listener->port());
  other.send("x\n");
  expect(other, "x\n");
  EXPECT_EQ(echoes[0]->bytes_read, 2U);
  echoes[0]->is_holding = false;
  client.send("d\n");
  expect(client, "a\nb\nc\nd\n");
}

TEST_F(SessionTest, one_that_hangs_up_while_it_is_held_is_noticed) {
  listen();
  Client client(listener->port());
  client.send("a\n");
  expect(client, "a\n");
  echoes[0]->is_holding = true;
  client.send("b\n");
  client.close();
  run_until([&] { return echoes[0]->hung_up; });
  echoes.clear();
  run_until([&] { return loop.sessions().size() == 0; });
}

TEST_F(SessionTest, one_that_sends_without_end_while_it_is_held_is_held_back) {
  listen();
  Client client(listener->port());
  client.send("a\n");
  expect(client, "a\n");
  echoes[0]->is_holding = true;
  const std::string much(1 << 20, '\n');
  size_t sent = 0;
  for (int i = 0; i < 200; ++i) {
    sent += client.push(much);
    loop.wait_until(Loop::now() + Millis{1});
    loop.finish_turn();
  }
  EXPECT_LT(sent, much.size() * 50) << "all of it was taken";
  echoes[0]->let_go();
  run_until([&] {
    client.receive();
    return client.received.size() == sent + 2;
  });
}

TEST_F(SessionTest, one_that_never_reads_is_held_back_and_then_dropped) {
  SessionLimits limits;
  limits.output_bytes = 64 * 1024;
  limits.stall = std::chrono::seconds{1};
  listen(limits);
  Client client(listener->port());
  const std::string line = std::string(60'000, 'x') + "\n";
  run_until([&] {
    client.push(line);
    return !echoes.empty() && echoes[0]->hung_up;
  });
  EXPECT_LT(echoes[0]->bytes_read, size_t{64} << 20);
  Client other(listener->port());
  other.send("still here\n");
  expect(other, "still here\n");
}

TEST_F(SessionTest, the_end_of_a_protocol_closes_when_all_is_sent) {
  listen();
  Client client(listener->port());
  client.send("bye\nquit\n");
  run_until([&] {
    client.receive();
    return client.is_closed;
  });
  EXPECT_EQ(client.received, "bye\nquit\n");
}

TEST_F(SessionTest, too_many_are_told_so) {
  listen({}, 1);
  Client first(listener->port());
  first.send("a\n");
  expect(first, "a\n");
  Client second(listener->port());
  run_until([&] {
    second.receive();
    return second.is_closed;
  });
  EXPECT_EQ(second.received, "full\n");
  EXPECT_EQ(listener->refused(), 1U);
}

TEST_F(SessionTest, an_address_in_use_is_an_error_that_names_it) {
  listen();
  Listener::Options options;
  options.host = "127.0.0.1";
  options.port = listener->port();
  const auto second = Listener::open(loop, options, {});
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().detail.find(std::to_string(options.port)), std::string::npos);
}

TEST_F(SessionTest, a_wait_ends_at_its_time_and_never_before) {
  for (const Millis wait : {Millis{1}, Millis{3}, Millis{20}}) {
    const Moment deadline = Loop::now() + wait;
    while (Loop::now() < deadline) loop.wait_until(deadline);
  }
}

TEST_F(SessionTest, a_request_that_never_comes_whole_is_ended) {
  SessionLimits limits;
  limits.request = std::chrono::milliseconds{50};
  listen(limits);
  Client slow(listener->port());
  Client idle(listener->port());
  slow.send("half");
  run_until([&] {
    slow.receive();
    return slow.is_closed;
  });
  EXPECT_EQ(echoes[0]->timed_out, 1);
  EXPECT_EQ(slow.received, "too late\n");
  idle.send("x\n");
  expect(idle, "x\n");  // who has begun nothing may take its time
}

TEST_F(SessionTest, one_byte_now_and_then_is_not_enough) {
  SessionLimits limits;
  limits.request = std::chrono::milliseconds{100};
  limits.bytes_per_second = 1'000'000;
  listen(limits);
  Client slow(listener->port());
  run_until([&] {
    if (!slow.is_closed) slow.push("x");
    slow.receive();
    return slow.is_closed;
  });
}

TEST_F(SessionTest, many_requests_one_after_another_are_not_one_that_takes_long) {
  SessionLimits limits;
  limits.request = std::chrono::milliseconds{100};
  limits.bytes_per_second = 1'000'000'000;
  listen(limits);
  Client client(listener->port());
  const auto end = steady_clock::now() + std::chrono::milliseconds{400};
  size_t lines = 0;
  run_until([&] {
    // There is always the half of a line left over.
    client.send(lines == 0 ? "a\nb" : "\nb");
    ++lines;
    const size_t before = client.received.size();
    run_until([&] {
      client.receive();
      return client.received.size() > before || client.is_closed;
    });
    return steady_clock::now() > end || client.is_closed;
  });
  EXPECT_FALSE(client.is_closed);
}

TEST_F(SessionTest, who_is_still_sending_can_read_why_it_was_closed) {
  listen();
  Client client(listener->port());
  const std::string more(1'000'000, 'x');
  client.send("quit\n");
  client.push(more);
  client.push(more);
  expect(client, "quit\n");
  run_until([&] {
    client.push("x");
    client.receive();
    return client.is_closed;
  });
}

TEST_F(SessionTest, one_that_is_held_amid_a_large_request_is_read_no_further) {
  listen();
  Client client(listener->port());
  const std::string part(200'000, 'x');
  size_t sent = 0;
  run_until([&] {
    sent += client.push(std::string_view(part).substr(sent));
    return sent == part.size();
  });
  // All of it is there, and the session waits for more.
  for (int turn = 0; turn < 50; ++turn) {
    loop.wait_until(Loop::now() + Millis{1});
    loop.finish_turn();
  }
  echoes[0]->is_holding = true;
  for (int turn = 0; turn < 50; ++turn) {
    sent += client.push(part);
    loop.wait_until(Loop::now() + Millis{1});
    loop.finish_turn();
  }
  echoes[0]->let_go();
  run_until([&] { return client.push("\n") > 0; });
  run_until([&] {
    client.receive();
    return client.received.size() == sent + 1;
  });
}

TEST_F(SessionTest, what_came_before_the_end_is_answered_though_it_was_held_up) {
  SessionLimits limits;
  limits.output_bytes = 1'000;
  listen(limits);
  Client client(listener->port());
  std::string all;
  for (int i = 0; i < 60; ++i) {
    const std::string line(999, 'x');
    client.send(line + "\n");
    all += line + "\n";
  }
  client.end_output();
  run_until([&] {
    client.receive();
    return client.is_closed;
  });
  EXPECT_EQ(client.received.size(), all.size());
}

// ---- who never says anything

TEST_F(SessionTest, a_client_that_never_speaks_is_closed_and_one_that_spoke_is_not) {
  SessionLimits limits;
  limits.stranger = std::chrono::milliseconds{100};
  listen(limits);
  Client quiet(listener->port());
  Client friendly(listener->port());
  friendly.send("x\n");
  run_until([&] {
    quiet.receive();
    return quiet.is_closed;
  });
  expect(friendly, "x\n");
  const auto later = steady_clock::now() + std::chrono::milliseconds{300};
  run_until([&] { return steady_clock::now() > later; });
  friendly.receive();
  EXPECT_FALSE(friendly.is_closed);
  EXPECT_EQ(loop.sessions().size(), 1U);
}

TEST_F(SessionTest, one_more_takes_the_place_of_who_never_spoke_longest) {
  listen({}, 3);
  Client first(listener->port());
  run_until([&] { return loop.sessions().size() == 1; });
  Client friendly(listener->port());
  friendly.send("x\n");
  expect(friendly, "x\n");
  Client third(listener->port());
  run_until([&] { return loop.sessions().size() == 3; });
  Client fourth(listener->port());
  fourth.send("y\n");
  expect(fourth, "y\n");
  first.receive();
  EXPECT_TRUE(first.is_closed);
  third.receive();
  EXPECT_FALSE(third.is_closed);
  EXPECT_EQ(listener->refused(), 0U);
}

TEST_F(SessionTest, a_tls_client_that_never_greets_is_closed_and_costs_nothing_meanwhile) {
  SessionLimits limits;
  limits.request = std::chrono::milliseconds{100};
  use_tls();
  listen(limits);
  Client silent(listener->port());
  Client gone(listener->port());
  Client talks_nonsense(listener->port());
  talks_nonsense.send("GET / HTTP/1.1\r\n\r\n");
  int turns = 0;
  run_until([&] {
    ++turns;
    silent.receive();
    talks_nonsense.receive();
    if (echoes.size() > 1 && echoes[1]->timed_out > 0) gone.close();
    return silent.is_closed && talks_nonsense.is_closed && loop.sessions().size() == 0;
  });
  EXPECT_EQ(echoes[0]->timed_out, 1);
  EXPECT_LT(turns, 2'000) << "it spins";
}

// ---- memory

TEST_F(SessionTest, when_all_is_held_by_one_that_does_not_read_it_goes_and_others_are_served) {
  loop.sessions().budget().set_limits({size_t{64} << 20, size_t{8} << 20});
  SessionLimits limits;
  limits.output_bytes = size_t{64} << 20;
  limits.stall = std::chrono::seconds{20};
  listen(limits);
  Client greedy(listener->port());
  const std::string line = std::string(1 << 20, 'x') + "\n";
  run_until([&] {
    greedy.push(line);
    return loop.sessions().budget().is_full();
  });
  EXPECT_LT(loop.sessions().budget().held(), size_t{12} << 20);
  Client other(listener->port());
  const auto begin = steady_clock::now();
  other.send("still here\n");
  expect(other, "still here\n");
  EXPECT_LT(steady_clock::now() - begin, std::chrono::seconds{10});
  EXPECT_TRUE(echoes[0]->hung_up);
  EXPECT_LT(loop.sessions().budget().held(), 100U);
}

TEST_F(SessionTest, requests_that_never_end_have_a_bound_and_the_largest_goes_first) {
  loop.sessions().set_limits({size_t{64} << 20, size_t{8} << 20});
  listen({});
  Client modest(listener->port());
  modest.send("half a ");
  std::vector<std::unique_ptr<Client>> greedy;
  for (int i = 0; i < 12; ++i) greedy.push_back(std::make_unique<Client>(listener->port()));
  const std::string piece(64 << 10, 'x');
  size_t most = 0;
  run_until([&] {
    size_t all = 0;
    for (const auto& client : greedy) {
      client->push(piece);
      client->receive();
    }
    for (const auto& session : loop.sessions().open()) all += session->footprint();
    most = std::max(most, all);
    return std::any_of(greedy.begin(), greedy.end(), [](const auto& client) { return client->is_closed; });
  });
  EXPECT_LT(most, size_t{24} << 20) << "a buffer that grows has twice the room that it needs";
  greedy.clear();
  modest.send("request\n");
  expect(modest, "half a request\n");
}

}  // namespace
}  // namespace delayq::net
