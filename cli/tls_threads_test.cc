// The verbs over TLS, against a server of a few lines with a certificate of its own.
#include <memory>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include "cli/connection.h"
#include "tests/support/identity.h"
#include "tests/support/loopback_listener.h"

namespace delayq::cli {
namespace {

using testing::HasSubstr;

using support::Identity;

/// Takes one client, shakes hands, and answers each read with the same bytes until the client goes.
class TlsServer {
 public:
  TlsServer(const Identity& identity, std::string reply, bool asks_for_certificate = false)
      : context_(SSL_CTX_new(TLS_server_method())) {
    SSL_CTX_use_certificate(context_, identity.certificate());
    SSL_CTX_use_PrivateKey(context_, identity.key());
    if (asks_for_certificate) {
      SSL_CTX_load_verify_locations(context_, identity.file().c_str(), nullptr);
      SSL_CTX_set_verify(context_, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    }
    thread_ = std::thread([this, reply = std::move(reply)] { serve(reply); });
  }
  ~TlsServer() {
    thread_.join();
    SSL_CTX_free(context_);
  }
  TlsServer(const TlsServer&) = delete;
  TlsServer& operator=(const TlsServer&) = delete;

  Server with(Server::Tls tls, const std::string& host = "127.0.0.1") const {
    return {.address = {host, listener_.port()}, .token = {}, .tls = std::move(tls)};
  }
  Server without() const { return {.address = {"127.0.0.1", listener_.port()}, .token = {}, .tls = {}}; }

 private:
  void serve(const std::string& reply) {
    const int client = listener_.accept();
    if (client < 0) return;
    SSL* const session = SSL_new(context_);
    SSL_set_fd(session, client);
    char bytes[4096];
    if (SSL_accept(session) == 1) {
      while (SSL_read(session, bytes, sizeof bytes) > 0) {
        SSL_write(session, reply.data(), static_cast<int>(reply.size()));
      }
    }
    SSL_free(session);
    // What we said reaches the client only if nothing of it is left unread.
    shutdown(client, SHUT_WR);
    while (recv(client, bytes, sizeof bytes, 0) > 0) {
    }
    close(client);
  }

  SSL_CTX* context_;
  support::LoopbackListener listener_;
  std::thread thread_;
};

class CliTls : public testing::Test {
 protected:
  static constexpr Millis kPatience = std::chrono::seconds{10};

  static Result<resp::Value> ask(const Server& server) {
    Result<Connection> connection = Connection::open(server, kPatience);
    if (!connection) return connection.error();
    const std::vector<std::string_view> command{"GET", "a", "b"};
    return connection->ask(command, kPatience);
  }

  Identity identity{"IP:127.0.0.1,DNS:localhost"};
};

TEST_F(CliTls, speaks_with_a_server_that_it_trusts) {
  const std::string body(3'000'000, 'x');
  for (const std::string host : {"127.0.0.1", "localhost"}) {
    const TlsServer server(identity, "$3000000\r\n" + body + "\r\n");
    const Result<resp::Value> reply =
        ask(server.with({.ca = identity.file(), .certificate = {}, .key = {}}, host));
    ASSERT_TRUE(reply) << reply.error().detail;
    EXPECT_EQ(reply->text.size(), body.size());
  }
}

TEST_F(CliTls, does_not_trust_just_anybody) {
  const TlsServer server(identity, "+OK\r\n");
  const Result<resp::Value> reply = ask(server.with({.ca = {}, .certificate = {}, .key = {}}));
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(reply.error().detail, HasSubstr("self-signed certificate. Name the authority"));
}

TEST_F(CliTls, trusts_anybody_when_told_so) {
  const TlsServer server(identity, "+OK\r\n");
  EXPECT_TRUE(ask(server.with({.ca = {}, .certificate = {}, .key = {}, .verify = false})));
}

TEST_F(CliTls, expects_the_host_that_it_asked_for) {
  const Identity other("IP:127.0.0.2,DNS:elsewhere");
  for (const std::string host : {"127.0.0.1", "localhost"}) {
    const TlsServer server(other, "+OK\r\n");
    const Result<resp::Value> reply =
        ask(server.with({.ca = other.file(), .certificate = {}, .key = {}}, host));
    ASSERT_FALSE(reply);
    EXPECT_THAT(reply.error().detail, HasSubstr("mismatch"));
  }
}

TEST_F(CliTls, shows_its_own_certificate) {
  {
    const TlsServer server(identity, "+OK\r\n", true);
    EXPECT_TRUE(
        ask(server.with({.ca = identity.file(), .certificate = identity.file(), .key = identity.file()})));
  }
  const TlsServer server(identity, "+OK\r\n", true);
  EXPECT_FALSE(ask(server.with({.ca = identity.file(), .certificate = {}, .key = {}})));
}

TEST_F(CliTls, names_the_file_that_it_cannot_use) {
  const TlsServer server(identity, "+OK\r\n");
  EXPECT_THAT(ask(server.with({.ca = "/nowhere/ca", .certificate = {}, .key = {}})).error().detail,
              HasSubstr("--ca: /nowhere/ca cannot be used"));
}

TEST_F(CliTls, tells_when_only_one_side_speaks_it) {
  const TlsServer server(identity, "+OK\r\n");
  EXPECT_THAT(ask(server.without()).error().detail, HasSubstr("If it speaks TLS there, use --tls"));
}

}  // namespace
}  // namespace delayq::cli
