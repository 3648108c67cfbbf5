#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "sdk/cpp/src/pipe.h"

typedef struct ssl_ctx_st SSL_CTX;
typedef struct ssl_st SSL;

namespace delayq::sdk {

/// Where a server is, and how it is talked to.
struct Remote {
  std::string host = "127.0.0.1";
  std::string port = "9278";
  ClientOptions options{};
};

/// "host:port", "host", "[::1]:9278". Throws ErrorCode::invalid.
Remote parse_address(std::string_view address);

/// How long something may take, and whether it should end before.
struct Patience {
  Steady::time_point deadline;
  const std::atomic<bool>& stops;
};

/// A connected socket, with or without TLS. Nothing blocks but connect().
class Socket {
 public:
  enum class Outcome : std::uint8_t { kDone, kWait, kClosed };

  Socket() = default;
  ~Socket() { close(); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  /// Blocks for at most `connect_timeout`, or until `stops` is set. Throws Error.
  void connect(const Remote& remote, const std::atomic<bool>& stops);
  /// Removes what was sent from `bytes`.
  Outcome write(std::string_view& bytes);
  /// Appends what has come. kDone: there may be more.
  Outcome read(std::string& bytes);
  /// Nothing more will be sent; what comes can be read.
  void end_output();
  void close();
  bool is_open() const { return file_ >= 0; }
  int file() const { return file_; }
  /// Whether write() waits until something can be read: only TLS does that.
  bool wants_input_to_write() const { return wants_input_to_write_; }
  const std::string& problem() const { return problem_; }

 private:
  void connect_tcp(const Remote& remote, const Patience& patience);
  void start_tls(const Remote& remote, const Patience& patience);
  Outcome after_tls(int result, bool writes);

  int file_ = -1;
  SSL_CTX* context_ = nullptr;
  SSL* tls_ = nullptr;
  bool wants_input_to_write_ = false;
  std::string problem_;
};

/// One connection to a server, and a thread that serves it. Connects when there is something to send, and
/// again when the connection was lost.
class NetPipe final : public Pipe {
 public:
  explicit NetPipe(Remote remote);
  ~NetPipe() override;

  void finish() override;
  void stop() override;

 private:
  void wake() override;

  void run();
  /// One turn: takes what was given, sends, waits, receives.
  void turn();
  void try_to_connect();
  /// Sends the first command, which authenticates, and reads its reply. Throws Error.
  void greet();
  void write_some();
  void read_some();
  void wait();
  void lose(const Error& error);
  /// Puts calls that are sent again before those that were not sent yet, or to the delayed ones.
  void take_back(Flight::Again again);
  /// Fails the calls that cannot wait until `moment`.
  void fail_those_before(Steady::time_point moment, const Error& error);
  void log(LogLevel level, const std::string& what) const;
  std::chrono::milliseconds next_backoff();

  const Remote remote_;
  int wake_ = -1;  ///< an eventfd
  std::atomic<bool> is_awake_ = false;
  std::atomic<bool> stops_ = false;
  std::atomic<bool> finishes_ = false;

  // ---- the thread's own
  Socket socket_;
  std::deque<std::unique_ptr<Call>> waiting_;  ///< not sent
  Delayed delayed_;
  Flight flight_;
  std::string output_;
  std::string_view unsent_;  ///< of output_
  std::string input_;
  std::size_t read_ = 0;  ///< of input_
  Steady::time_point next_attempt_{};
  unsigned attempts_ = 0;  ///< since the last reply
  bool has_more_ = false;  ///< to read, though poll() may not know
  bool has_ended_output_ = false;
  Steady::time_point linger_until_ = Steady::time_point::max();  ///< for replies, when the output is ended
  bool is_away_ = false;                                         ///< the log says so

  std::thread thread_;
};

}  // namespace delayq::sdk
