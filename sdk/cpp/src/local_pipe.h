#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>

#include "sdk/cpp/src/embedded.h"
#include "sdk/cpp/src/pipe.h"

namespace delayq::sdk {

/// A conversation with the engine of this process. The engine's thread serves it.
class LocalPipe final : public Pipe, private embedded::Peer {
 public:
  explicit LocalPipe(std::shared_ptr<embedded::Engine> engine);
  ~LocalPipe() override;

  void finish() override;
  void stop() override;
  /// What the engine's thread calls first.
  static void begin_engine_thread(const char* name) { begin_thread(name); }

 private:
  void wake() override { engine_->wake(); }

  // ---- on the engine's thread
  void begin(std::unique_ptr<embedded::Session> session) override { session_ = std::move(session); }
  void end() override;
  bool turn() override;
  Steady::time_point next() const override { return delayed_.next(); }
  /// Gives the session what waits, in order.
  void send_waiting(Steady::time_point now);
  bool read_input();
  void take_pushed(Steady::time_point now);
  void delay(Flight::Again again);
  void lose(const Error& error);

  std::shared_ptr<embedded::Engine> engine_;
  std::atomic<bool> finishes_ = false;
  bool is_stopped_ = false;

  std::unique_ptr<embedded::Session> session_;
  std::deque<std::unique_ptr<Call>> waiting_;
  Delayed delayed_;
  Flight flight_;
  std::string input_;     ///< commands that the session has not read
  std::size_t read_ = 0;  ///< of input_
  std::unordered_map<std::uint64_t, std::unique_ptr<Call>> pushing_;  ///< calls with jobs, by ticket
  std::uint64_t last_ticket_ = 0;
};

}  // namespace delayq::sdk
