#pragma once

#include "bench/load/dialect.h"

namespace delayq::bench {

/// beanstalkd's protocol: put, reserve-with-timeout 0, delete.
class BeanstalkdDialect final : public LifeDialect {
 public:
  explicit BeanstalkdDialect(size_t body);

  Result<Reply> first_reply(std::string_view input) const override;
  void append_push(size_t lane, uint64_t number, std::string& out) const override;
  void append_pop(size_t lane, std::string& out) const override;
  size_t append_acks(std::string_view reply, std::string& out) const override;
  size_t push_reply_bytes() const override { return 12; }
  size_t pop_reply_bytes() const override { return 18 + body_; }
  size_t ack_reply_bytes() const override { return 9; }

  /// A job due in an hour.
  void append_far_push(std::string& out) const { out += far_; }

 private:
  size_t body_;
  std::string ready_;
  std::string far_;
};

}  // namespace delayq::bench
