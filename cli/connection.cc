#include "cli/connection.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "cli/verb.h"
#include "core/duration.h"
#include "resp/writer.h"

namespace delayq::cli {

namespace {

Error unavailable(std::string detail) { return {ErrorCode::kUnavailable, {}, std::move(detail)}; }

}  // namespace

Result<Connection> Connection::open(const Address& address, Millis patience) {
  return open(Server{.address = address, .token = {}, .tls = {}}, patience);
}

Result<Connection> Connection::open(const Server& server, Millis patience) {
  Result<Stream> stream = Stream::open(server, Clock::now() + patience);
  if (!stream) return stream.error();
  Connection connection(std::move(*stream));
  if (!server.token.empty()) {
    if (Status status = connection.introduce(server.token, patience); !status) return status.error();
  }
  return connection;
}

Status Connection::introduce(const std::string& token, Millis patience) {
  const std::array<std::string_view, 2> command{"AUTH", token};
  const Result<resp::Value> reply = ask(command, patience);
  if (!reply) return reply.error();
  if (!reply->is_error()) return {};
  return Error{ErrorCode::kUnauthorized,
               {},
               fmt::format("{} refuses the token (--token, $DELAYQ_TOKEN): {}", stream_.name(),
                           error_of_reply(reply->text).detail)};
}

Result<resp::Value> Connection::ask(std::span<const std::string_view> command, Millis patience) {
  const Clock::time_point deadline = Clock::now() + patience;
  std::string bytes;
  resp::append_command(bytes, command);
  if (Status status = stream_.send(bytes, deadline); !status) return status.error();
  return read_reply(deadline, patience);
}

Result<std::vector<resp::Value>> Connection::ask_all(std::span<const std::vector<std::string>> commands,
                                                     Millis patience) {
  const Clock::time_point deadline = Clock::now() + patience;
  std::string bytes;
  for (const std::vector<std::string>& command : commands) {
    const std::vector<std::string_view> words(command.begin(), command.end());
    resp::append_command(bytes, words);
  }
  if (Status status = stream_.send(bytes, deadline); !status) return status.error();
  std::vector<resp::Value> replies;
  replies.reserve(commands.size());
  while (replies.size() < commands.size()) {
    Result<resp::Value> reply = read_reply(deadline, patience);
    if (!reply) return reply.error();
    replies.push_back(std::move(*reply));
  }
  return replies;
}

Status Connection::send(std::span<const std::string_view> command, Millis patience) {
  std::string bytes;
  resp::append_command(bytes, command);
  return stream_.send(bytes, Clock::now() + patience);
}

Status Connection::hear(std::vector<resp::Value>& heard) {
  const Result<bool> came = stream_.receive(input_, Clock::now());
  if (!came) return came.error();
  std::string_view rest = input_;
  for (;;) {
    Result<std::optional<resp::Value>> value = resp::take_reply(rest);
    if (!value)
      return unavailable(fmt::format("{} does not speak RESP: {}", stream_.name(), value.error().detail));
    if (!*value) break;
    heard.push_back(std::move(**value));
  }
  input_.erase(0, input_.size() - rest.size());
  return {};
}

Result<resp::Value> Connection::read_reply(Clock::time_point deadline, Millis patience) {
  for (;;) {
    const Result<std::optional<size_t>> size = resp::reply_size(input_);
    if (!size && input_.starts_with("HTTP/"))
      return unavailable(fmt::format(
          "{} speaks HTTP; name the port of RESP (server.resp), which is 9278 by default", stream_.name()));
    if (!size)
      return unavailable(fmt::format("{} does not speak RESP: {}", stream_.name(), size.error().detail));
    if (*size) break;
    const Result<bool> came = stream_.receive(input_, deadline);
    if (!came) return came.error();
    if (!*came)
      return unavailable(
          fmt::format("no answer from {} within {}", stream_.name(), format_duration(patience)));
  }
  std::string_view rest = input_;
  Result<std::optional<resp::Value>> value = resp::take_reply(rest);
  if (!value) return value.error();
  input_.erase(0, input_.size() - rest.size());
  return std::move(**value);
}

namespace {

constexpr size_t kChunk = size_t{256} << 10;

/// "connection refused", as it reads within a sentence.
std::string reason(int error) {
  std::string text = std::generic_category().message(error);
  if (!text.empty() && text[0] >= 'A' && text[0] <= 'Z') text[0] = static_cast<char>(text[0] - 'A' + 'a');
  return text;
}

Error not_connected(const std::string& name, std::string_view why) {
  return unavailable(fmt::format(
      "could not connect to {}: {}. Is the server running? Start one with: delayq serve", name, why));
}

Error closed(const std::string& name) {
  return unavailable(fmt::format("{} closed the connection without an answer", name));
}

thread_local WaitGuard* guard = nullptr;

}  // namespace

WaitGuard::WaitGuard(std::array<int, 2> descriptors, std::function<bool()> is_over)
    : descriptors_(descriptors), is_over_(std::move(is_over)) {
  guard = this;
}

WaitGuard::~WaitGuard() { guard = nullptr; }

/// Waits until the socket is ready for `events`; false when the deadline came first.
bool wait_for(int socket, short events, Stream::Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<Millis>(deadline - Stream::Clock::now());
    std::array<pollfd, 3> entries{{{.fd = socket, .events = events, .revents = 0},
                                   {.fd = -1, .events = POLLIN, .revents = 0},
                                   {.fd = -1, .events = POLLIN, .revents = 0}}};
    if (guard != nullptr) {
      entries[1].fd = guard->descriptors_[0];
      entries[2].fd = guard->descriptors_[1];
    }
    const auto timeout = static_cast<int>(std::clamp<int64_t>(left.count(), 0, 1'000'000'000));
    const int ready = poll(entries.data(), entries.size(), timeout);
    if (ready == 0 || (ready < 0 && errno != EINTR)) return false;
    const bool is_called = ready > 0 && (entries[1].revents != 0 || entries[2].revents != 0);
    if (is_called && guard->is_over_()) return false;
    if (entries[0].revents != 0) return true;
  }
}

namespace {

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

/// A connected socket, or -1 with errno.
int connect_to(const addrinfo& address, Stream::Clock::time_point deadline) {
  const int socket_fd =
      socket(address.ai_family, address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, address.ai_protocol);
  if (socket_fd < 0) return -1;
  int error = connect(socket_fd, address.ai_addr, address.ai_addrlen) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    socklen_t size = sizeof error;
    error = ETIMEDOUT;
    if (wait_for(socket_fd, POLLOUT, deadline)) getsockopt(socket_fd, SOL_SOCKET, SO_ERROR, &error, &size);
  }
  if (error != 0) {
    close(socket_fd);
    errno = error;
    return -1;
  }
  const int on = 1;
  setsockopt(socket_fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return socket_fd;
}

/// Connected to the first of the host's addresses that answers.
Result<int> connect_to(const Address& address, const std::string& name, Stream::Clock::time_point deadline) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(address.port);
  // Without a host this is the loopback, where a server that listens on all interfaces can be reached.
  const char* const host = address.host.empty() ? nullptr : address.host.c_str();
  if (const int failed = getaddrinfo(host, port.c_str(), &hints, &found); failed != 0) {
    return unavailable(fmt::format("could not connect to {}: {}", name, gai_strerror(failed)));
  }
  const std::unique_ptr<addrinfo, FreeAddresses> list(found);
  int error = EHOSTUNREACH;
  for (const addrinfo* each = list.get(); each != nullptr; each = each->ai_next) {
    const int socket_fd = connect_to(*each, deadline);
    if (socket_fd >= 0) return socket_fd;
    error = errno;
  }
  return not_connected(name, reason(error));
}

}  // namespace

Stream::Stream(int socket, std::string name) : socket_(socket), name_(std::move(name)) {}

Stream::Stream(Stream&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)),
      name_(std::move(other.name_)),
      tls_(std::move(other.tls_)),
      has_heard_(other.has_heard_) {}

Stream::~Stream() {
  if (socket_ >= 0) close(socket_);
}

Result<Stream> Stream::open(const Server& server, Clock::time_point deadline) {
  const std::string name = to_string(server.address);
  const Result<int> socket_fd = connect_to(server.address, name, deadline);
  if (!socket_fd) return socket_fd.error();
  Stream stream(*socket_fd, name);
  if (server.tls) {
    if (Status status = stream.shake_hands(server, deadline); !status) return status.error();
  }
  return stream;
}

Status Stream::shake_hands(const Server& server, Clock::time_point deadline) {
  Result<Tls> tls = Tls::create(server);
  if (!tls) return tls.error();
  for (;;) {
    const Result<bool> done = tls->shake_hands();
    // The other side must get the alert, too.
    if (Status status = send_raw(tls->outgoing(), deadline); !status) return status;
    if (!done) return unavailable(fmt::format("could not connect to {}: {}", name_, done.error().detail));
    if (*done) break;
    std::string bytes;
    const Result<bool> came = receive_raw(bytes, deadline);
    if (!came) return came.error();
    if (!*came) return unavailable(fmt::format("{} does not answer in TLS", name_));
    tls->take(bytes);
  }
  tls_ = std::make_unique<Tls>(std::move(*tls));
  return {};
}

Status Stream::send(std::string_view bytes, Clock::time_point deadline) {
  if (tls_ == nullptr) return send_raw(bytes, deadline);
  if (Status status = tls_->encrypt(bytes); !status) return status;
  return send_raw(tls_->outgoing(), deadline);
}

Result<bool> Stream::receive(std::string& input, Clock::time_point deadline) {
  if (tls_ == nullptr) return receive_plain(input, deadline);
  const size_t before = input.size();
  while (input.size() == before) {
    std::string bytes;
    Result<bool> came = receive_raw(bytes, deadline);
    if (!came || !*came) return came;
    tls_->take(bytes);
    const Result<bool> goes_on = tls_->decrypt(input);
    if (!goes_on)
      return unavailable(fmt::format("the connection to {} broke: {}", name_, goes_on.error().detail));
    if (!*goes_on && input.size() == before) return closed(name_);
    if (Status status = send_raw(tls_->outgoing(), deadline); !status) return status.error();
  }
  return true;
}

Result<bool> Stream::receive_plain(std::string& input, Clock::time_point deadline) {
  Result<bool> came = receive_raw(input, deadline);
  if (came) {
    has_heard_ = has_heard_ || *came;
  } else if (!has_heard_) {
    // A server that expects TLS closes a plain connection like this.
    return unavailable(came.error().detail + ". If it speaks TLS there, use --tls");
  }
  return came;
}

Status Stream::send_raw(std::string_view bytes, Clock::time_point deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
    } else if (errno == EAGAIN) {
      if (!wait_for(socket_, POLLOUT, deadline))
        return unavailable(fmt::format("{} does not read the rest of the command", name_));
    } else if (errno != EINTR) {
      return unavailable(fmt::format("the connection to {} broke: {}", name_, reason(errno)));
    }
  }
  return {};
}

Result<bool> Stream::receive_raw(std::string& input, Clock::time_point deadline) {
  const size_t before = input.size();
  for (;;) {
    input.resize(before + kChunk);
    const ssize_t got = recv(socket_, input.data() + before, kChunk, 0);
    input.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got > 0) return true;
    if (got == 0) return closed(name_);
    if (errno != EAGAIN && errno != EINTR)
      return unavailable(fmt::format("the connection to {} broke: {}", name_, reason(errno)));
    if (!wait_for(socket_, POLLIN, deadline)) return false;
  }
}

namespace {

constexpr size_t kRecord = size_t{16} << 10;

Error unusable(std::string_view option, const std::string& file) {
  if (access(file.c_str(), R_OK) != 0) {
    const int why = errno;
    ERR_clear_error();
    return invalid(fmt::format("{}: {} cannot be used: {}", option, file, reason(why)));
  }
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return invalid(
      fmt::format("{}: {} cannot be used: {}", option, file, reason != nullptr ? reason : "unknown reason"));
}

Status load_files(SSL_CTX* context, const Server::Tls& tls) {
  if (tls.ca.empty()) {
    SSL_CTX_set_default_verify_paths(context);
  } else if (SSL_CTX_load_verify_locations(context, tls.ca.c_str(), nullptr) != 1) {
    return unusable("--ca", tls.ca);
  }
  if (tls.certificate.empty()) return {};
  if (SSL_CTX_use_certificate_chain_file(context, tls.certificate.c_str()) != 1)
    return unusable("--cert", tls.certificate);
  if (SSL_CTX_use_PrivateKey_file(context, tls.key.c_str(), SSL_FILETYPE_PEM) != 1)
    return unusable("--key", tls.key);
  return {};
}

bool is_numeric(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> bytes;
  return inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 ||
         inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1;
}

/// Sets the name that the certificate must have.
void expect_host(SSL* session, const std::string& host) {
  if (is_numeric(host)) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), host.c_str());
  } else {
    SSL_set1_host(session, host.c_str());
    // Does what the macro SSL_set_tlsext_host_name() does, without its cast.
    SSL_ctrl(session, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
             const_cast<char*>(host.c_str()));
  }
}

}  // namespace

void Tls::Free::operator()(ssl_ctx_st* context) const { SSL_CTX_free(context); }
void Tls::Free::operator()(ssl_st* session) const { SSL_free(session); }

Result<Tls> Tls::create(const Server& server) {
  Tls tls;
  tls.context_.reset(SSL_CTX_new(TLS_client_method()));
  if (tls.context_ == nullptr) return Error{ErrorCode::kInternal, {}, "OpenSSL gives no context"};
  SSL_CTX_set_min_proto_version(tls.context_.get(), TLS1_2_VERSION);
  if (Status status = load_files(tls.context_.get(), *server.tls); !status) return status.error();
  SSL_CTX_set_verify(tls.context_.get(), server.tls->verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  tls.session_.reset(SSL_new(tls.context_.get()));
  if (tls.session_ == nullptr) return Error{ErrorCode::kInternal, {}, "OpenSSL gives no session"};
  SSL_set_bio(tls.session_.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  expect_host(tls.session_.get(), server.address.host.empty() ? "localhost" : server.address.host);
  SSL_set_connect_state(tls.session_.get());
  return tls;
}

Result<bool> Tls::shake_hands() {
  const int outcome = SSL_do_handshake(session_.get());
  if (outcome == 1) return true;
  if (SSL_get_error(session_.get(), outcome) == SSL_ERROR_WANT_READ) return false;
  return failed();
}

void Tls::take(std::string_view bytes) {
  BIO_write(SSL_get_rbio(session_.get()), bytes.data(), static_cast<int>(bytes.size()));
}

Result<bool> Tls::decrypt(std::string& plain) {
  std::array<char, kRecord> chunk;
  for (;;) {
    size_t got = 0;
    const int outcome = SSL_read_ex(session_.get(), chunk.data(), chunk.size(), &got);
    if (outcome == 1) {
      plain.append(chunk.data(), got);
      continue;
    }
    const int error = SSL_get_error(session_.get(), outcome);
    if (error == SSL_ERROR_WANT_READ) return true;
    if (error == SSL_ERROR_ZERO_RETURN) return false;
    return failed();
  }
}

Status Tls::encrypt(std::string_view plain) {
  size_t written = 0;
  if (plain.empty() || SSL_write_ex(session_.get(), plain.data(), plain.size(), &written) == 1) return {};
  return failed();
}

std::string Tls::outgoing() {
  BIO* const bio = SSL_get_wbio(session_.get());
  std::string bytes(BIO_ctrl_pending(bio), '\0');
  if (!bytes.empty()) BIO_read(bio, bytes.data(), static_cast<int>(bytes.size()));
  return bytes;
}

Error Tls::failed() const {
  const long verified = SSL_get_verify_result(session_.get());
  const unsigned long last = ERR_peek_last_error();
  const int reason = ERR_GET_REASON(last);
  const char* const text = ERR_reason_error_string(last);
  ERR_clear_error();
  std::string detail;
  if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED && verified != X509_V_OK) {
    detail = fmt::format(
        "its certificate is not trusted: {}. Name the authority that signed it with --ca FILE, "
        "or use --insecure to accept any certificate",
        X509_verify_cert_error_string(verified));
  } else if (reason == SSL_R_WRONG_VERSION_NUMBER) {
    detail = "it does not speak TLS there; leave --tls out, or name the port that does";
  } else {
    detail = fmt::format("TLS failed: {}", text != nullptr ? text : "the connection ended early");
  }
  return {ErrorCode::kUnavailable, {}, std::move(detail)};
}

}  // namespace delayq::cli
