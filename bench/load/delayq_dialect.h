#pragma once

#include <string>
#include <vector>

#include "bench/load/dialect.h"
#include "core/time.h"

namespace delayq::bench {

/// delayq's commands over RESP2, made from bytes that are prepared once: only what differs from job to job is
/// written anew.
class DelayqDialect final : public LifeDialect {
 public:
  struct Shape {
    std::string topic = "bench";  ///< with several of them, the first part of their names
    size_t topics = 1;
    size_t body = 128;
  };

  explicit DelayqDialect(Shape shape);

  Result<Reply> first_reply(std::string_view input) const override;

  void append_push(size_t lane, uint64_t number, std::string& out) const override;
  void append_pop(size_t lane, std::string& out) const override;
  size_t append_acks(std::string_view reply, std::string& out) const override;
  size_t push_reply_bytes() const override { return 8; }
  size_t pop_reply_bytes() const override { return shape_.body + 40; }
  size_t ack_reply_bytes() const override { return 4; }

  /// A job due in an hour, with an id that the server makes.
  void append_far_push(uint64_t number, std::string& out) const;
  /// The same with the caller's id(number), and its cancel.
  void append_named_push(uint64_t number, std::string& out) const;
  void append_cancel(uint64_t number, std::string& out) const;
  /// A job due at `due`, whose body begins with due_text(due): what was asked for is known to the consumer
  /// whatever the server says. REQUIRES: a body of at least kDueBytes.
  void append_dated_push(uint64_t number, Moment due, std::string& out) const;
  /// POP of all topics with COUNT and WAIT.
  std::string pop_all(size_t count, std::string_view wait) const;

  static std::string id(uint64_t number);
  static std::string due_text(Moment due);
  static constexpr size_t kDueBytes = 13;

  const std::vector<std::string>& topics() const { return topics_; }

 private:
  /// Bytes of commands for one topic.
  struct Prepared {
    std::string push_ready, push_far, push_named, push_dated, push_dated_end, pop, cancel;
  };

  const Prepared& of(uint64_t number) const { return prepared_[number % prepared_.size()]; }

  Shape shape_;
  std::vector<std::string> topics_;
  std::vector<Prepared> prepared_;
};

}  // namespace delayq::bench
