#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "core/random.h"
#include "core/time.h"
#include "tests/simulation/connections/talker.h"
#include "tests/simulation/connections/tls_ends.h"
#include "tests/simulation/connections/wire.h"

namespace delayq::connections {

/// One client: sends its requests in any pieces, reads when it likes, and compares each answer with what it
/// asked. Throws Broken for an answer that is wrong, out of order, or one too many.
class Client {
 public:
  struct Manner {
    bool is_tls = false;
    bool is_tls_1_2 = false;
    bool is_greedy = false;    ///< asks for much at once
    bool is_confused = false;  ///< sends bytes that are no request
    bool is_silent = false;    ///< sends nothing at all
  };

  Client(Random& random, Wire& wire, std::unique_ptr<Talker> talker, Manner manner);

  /// Does one thing that a client may do.
  void act();
  /// Behaves well from now on: sends the rest, reads everything.
  void settle();
  void time_passes(Millis time);
  /// Takes away the right to be served to the end: the server may have closed it for a good reason.
  void excuse() { is_excused_ = true; }

  bool is_gone() const { return is_gone_; }
  /// It asked, behaved well, and is owed answers: what is missing, or nothing.
  std::string complaint() const;
  uint64_t answers() const { return answers_; }
  bool asked_for_news() const { return talker_->asked_for_news(); }
  uint64_t requests() const { return requests_; }
  bool was_served_to_the_end() const { return answers_ > 0 && asked_.empty(); }

 private:
  void ask_more();
  void send_some(bool all);
  void read_some(bool all);
  void take_answers();

  Random& random_;
  Wire& wire_;
  std::unique_ptr<Talker> talker_;
  Manner manner_;
  std::unique_ptr<TlsClientEnd> tls_;
  std::string outbox_;   ///< of what it says, what is not yet sent
  std::string carried_;  ///< the same, as it goes over the wire
  std::string inbox_;
  std::deque<Asked> asked_;
  Millis quiet_{};
  uint64_t answers_ = 0;
  uint64_t requests_ = 0;
  bool reads_ = true;
  bool is_gone_ = false;
  bool has_ended_ = false;  ///< it said that it will send no more
  bool is_excused_ = false;
  bool is_finished_ = false;   ///< the server said that it answers no more
  bool is_understood_ = true;  ///< nothing senseless was sent yet
};

}  // namespace delayq::connections
