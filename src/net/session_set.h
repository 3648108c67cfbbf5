#pragma once

#include <list>
#include <memory>
#include <string>
#include <vector>

#include <absl/container/flat_hash_set.h>

#include "net/answer_budget.h"
#include "net/socket.h"

namespace delayq::net {

class Session;

/// Whoever has something to send at the end of a turn.
class AtTurnEnd {
 public:
  virtual ~AtTurnEnd() = default;
  /// Answers whether it read something meanwhile: then there is new work.
  virtual bool finish_turn() = 0;
};

/// The open sessions of one loop, and what they share. Knows no sockets and no clock.
class SessionSet {
 public:
  SessionSet();
  ~SessionSet();
  SessionSet(const SessionSet&) = delete;
  SessionSet& operator=(const SessionSet&) = delete;

  /// Lets `whoever` finish this turn. To be called once a turn: it is not looked up whether it is there
  /// already.
  void touch(std::shared_ptr<AtTurnEnd> whoever) { touched_.push_back(std::move(whoever)); }
  /// Sends what is to be sent. Returns whether a connection read something meanwhile: then there is new work.
  bool finish_turn();

  /// Forgets them all, without a word to anybody.
  void clear();
  size_t size() const { return open_.size(); }
  const absl::flat_hash_set<std::shared_ptr<Session>>& open() const { return open_; }
  /// Of answers, and as much again of requests that have not come whole.
  void set_limits(AnswerLimits limits) {
    budget_.set_limits(limits);
    requests_.set_limits(limits);
  }
  AnswerBudget& budget() { return budget_; }
  const AnswerBudget& budget() const { return budget_; }

  /// Closes the session that has said nothing for the longest time among those whose client never said
  /// anything, or never who it is. Returns false when there is none.
  bool drop_stranger();

 private:
  friend class Session;

  /// Of a session that waits for others to give back what they hold of the budget.
  void hold_back(std::shared_ptr<Session> session) { held_back_.push_back(std::move(session)); }
  /// While the budget is full: closes the session with the most unsent bytes among those whose clients read
  /// slowly.
  void drop_slow_reader(Steady now);
  /// Closes sessions, the one with the most bytes of a request first, until all have no more than the limit.
  /// Nothing of such a request has been executed.
  void drop_largest_requests();

  AnswerBudget budget_;
  AnswerBudget requests_;                            ///< what has come of requests that are not whole
  std::vector<std::shared_ptr<AtTurnEnd>> touched_;  ///< those with something to do at the end of this turn
  std::string scratch_;            ///< every read goes here first: idle sessions own no buffer
  std::list<Session*> strangers_;  ///< those that were quiet longest first
  std::vector<std::shared_ptr<Session>> held_back_;
  Steady last_drop_{};
  /// They live as long as they are here.
  absl::flat_hash_set<std::shared_ptr<Session>> open_;
};

}  // namespace delayq::net
