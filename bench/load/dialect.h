#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"

/// How a server is spoken to. The shapes of load (stream.h, life.h) know only this, so that every server is
/// given the same load.
namespace delayq::bench {

struct Reply {
  size_t size = 0;  ///< 0: it has not all come yet
  bool is_error = false;
};

class Dialect {
 public:
  virtual ~Dialect() = default;

  /// The reply at the front of `input`, which is not empty; an error when that is none.
  virtual Result<Reply> first_reply(std::string_view input) const = 0;
};

/// The three steps of a job's life.
class LifeDialect : public Dialect {
 public:
  /// Appends a push of a job that is ready at once. A lane pops what lanes of its own topic pushed.
  virtual void append_push(size_t lane, uint64_t number, std::string& out) const = 0;
  /// Appends a pop of one job, that does not wait for one.
  virtual void append_pop(size_t lane, std::string& out) const = 0;
  /// Appends an ack for every job in a whole reply to a pop, and answers how many that were.
  virtual size_t append_acks(std::string_view reply, std::string& out) const = 0;

  /// No good reply is shorter; only a hint for how long to sleep.
  virtual size_t push_reply_bytes() const = 0;
  virtual size_t pop_reply_bytes() const = 0;
  virtual size_t ack_reply_bytes() const = 0;
};

}  // namespace delayq::bench
