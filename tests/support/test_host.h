#pragma once

#include <atomic>
#include <csignal>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/ssl.h>

#include "tests/support/identity.h"

namespace delayq::support {

/// One connection of a host, on its own thread: blocking, plain or TLS.
class TestPeer {
 public:
  TestPeer(int socket, SSL* session) : socket_(socket), session_(session) {}
  ~TestPeer() {
    if (session_ != nullptr) SSL_free(session_);
    ::close(socket_);
  }
  TestPeer(const TestPeer&) = delete;
  TestPeer& operator=(const TestPeer&) = delete;

  bool shake_hands() { return session_ == nullptr || SSL_accept(session_) == 1; }
  /// Appends received bytes; returns false if the connection is closed.
  bool read(std::string& input) {
    char bytes[16384];
    const ssize_t count = session_ != nullptr ? SSL_read(session_, bytes, sizeof bytes)
                                              : ::recv(socket_, bytes, sizeof bytes, 0);
    if (count <= 0) return false;
    input.append(bytes, static_cast<size_t>(count));
    return true;
  }
  bool write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = session_ != nullptr
                                ? SSL_write(session_, bytes.data(), static_cast<int>(bytes.size()))
                                : ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(count));
    }
    return true;
  }
  /// The protocol negotiated in the handshake: "h2", or empty.
  std::string protocol() const {
    const unsigned char* name = nullptr;
    unsigned length = 0;
    if (session_ != nullptr) SSL_get0_alpn_selected(session_, &name, &length);
    return {reinterpret_cast<const char*>(name), length};
  }
  /// May be called from any thread: makes its reads and writes fail.
  void break_off() { ::shutdown(socket_, SHUT_RDWR); }

 private:
  int socket_;
  SSL* session_;
};

/// A server on a loopback port. Each connection runs `serve` on its own thread.
class TestHost {
 public:
  using Serve = std::function<void(TestPeer&)>;

  /// `protocols` are those it offers over TLS, in ALPN format: "\x02h2".
  explicit TestHost(Serve serve, const Identity* identity = nullptr, std::string protocols = {})
      : serve_(std::move(serve)),
        protocols_(std::move(protocols)),
        listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    std::signal(SIGPIPE, SIG_IGN);  // OpenSSL may write to a closed connection
    if (identity != nullptr) use_tls(*identity);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(listener_, generic, size), 0);
    EXPECT_EQ(::listen(listener_, 128), 0);
    EXPECT_EQ(::getsockname(listener_, generic, &size), 0);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  ~TestHost() {
    ::shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    ::close(listener_);
    for (Connection& each : connections_) each.peer->break_off();
    for (Connection& each : connections_) each.thread.join();
    SSL_CTX_free(context_);
  }
  TestHost(const TestHost&) = delete;
  TestHost& operator=(const TestHost&) = delete;

  uint16_t port() const { return port_; }
  std::string url(std::string_view path = "/", std::string_view host = "127.0.0.1") const {
    return (context_ != nullptr ? "https://" : "http://") + std::string(host) + ":" + std::to_string(port_) +
           std::string(path);
  }
  int accepts() const { return accepts_; }
  /// The protocols that the last client offered over TLS.
  std::string offered() {
    const std::lock_guard lock(mutex_);
    return offered_;
  }

 private:
  struct Connection {
    std::unique_ptr<TestPeer> peer;
    std::thread thread;
  };

  void use_tls(const Identity& identity) {
    context_ = SSL_CTX_new(TLS_server_method());
    SSL_CTX_use_certificate(context_, identity.certificate());
    SSL_CTX_use_PrivateKey(context_, identity.key());
    SSL_CTX_set_alpn_select_cb(
        context_,
        [](SSL*, const unsigned char** out, unsigned char* length, const unsigned char* in, unsigned size,
           void* self) { return static_cast<TestHost*>(self)->choose(out, length, in, size); },
        this);
  }

  int choose(const unsigned char** out, unsigned char* length, const unsigned char* in, unsigned size) {
    const std::lock_guard lock(mutex_);
    offered_.assign(reinterpret_cast<const char*>(in), size);
    const auto* const ours = reinterpret_cast<const unsigned char*>(protocols_.data());
    unsigned char* chosen = nullptr;
    const int result =
        SSL_select_next_proto(&chosen, length, ours, static_cast<unsigned>(protocols_.size()), in, size);
    *out = chosen;
    return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
  }

  void accept_all() {
    for (;;) {
      const int socket = ::accept(listener_, nullptr, nullptr);
      if (socket < 0) return;
      ++accepts_;
      SSL* session = nullptr;
      if (context_ != nullptr) {
        session = SSL_new(context_);
        SSL_set_fd(session, socket);
      }
      Connection& connection = connections_.emplace_back();
      connection.peer = std::make_unique<TestPeer>(socket, session);
      connection.thread = std::thread([this, peer = connection.peer.get()] {
        if (peer->shake_hands()) serve_(*peer);
        peer->break_off();
      });
    }
  }

  Serve serve_;
  std::string protocols_;
  SSL_CTX* context_ = nullptr;
  int listener_;
  uint16_t port_ = 0;
  std::atomic<int> accepts_ = 0;
  std::mutex mutex_;
  std::string offered_;
  std::list<Connection> connections_;
  std::thread acceptor_;
};

/// Reads HTTP/1.1 requests and sends the bytes that `answer` returns for each. If it returns none, nothing is
/// sent and reading continues. The connection ends after a response with the header "Connection: close".
inline TestHost::Serve http(std::function<std::string(const std::string& request)> answer) {
  return [answer = std::move(answer)](TestPeer& peer) {
    std::string input;
    for (;;) {
      size_t end = std::string::npos;
      while ((end = input.find("\r\n\r\n")) == std::string::npos) {
        if (!peer.read(input)) return;
      }
      size_t length = 0;
      if (const size_t at = input.find("Content-Length: "); at < end)
        length = std::stoul(input.substr(at + 16));
      while (input.size() < end + 4 + length) {
        if (!peer.read(input)) return;
      }
      const std::string bytes = answer(input.substr(0, end + 4 + length));
      input.erase(0, end + 4 + length);
      if (!peer.write(bytes) || bytes.find("Connection: close\r\n") != std::string::npos) return;
    }
  };
}

/// A response with these header lines, each with its line end.
inline std::string http_reply(int status, std::string_view body, std::string_view headers = {}) {
  return "HTTP/1.1 " + std::to_string(status) + " Text\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n" + std::string(headers) + "\r\n" + std::string(body);
}

}  // namespace delayq::support
