#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <absl/container/flat_hash_map.h>
#include <absl/functional/any_invocable.h>

#include "delivery/sink.h"

namespace delayq::delivery {

/// The Redis that jobs are written to. For one thread. No call blocks, and no answer comes from inside a
/// call.
class RedisTarget {
 public:
  /// The reply of Redis, as text; or an error:
  ///   kUnavailable  Redis is away, and the command may or may not have been carried out
  ///   kOverloaded   Redis accepts nothing more now; nothing was done
  ///   any other     Redis refused this command; the detail is its own text
  using Answer = absl::AnyInvocable<void(Result<std::string>)>;

  virtual ~RedisTarget() = default;

  /// Sends a command. Commands with the same key are carried out in the order given. The words are copied.
  virtual void call(std::string_view key, std::span<const std::string_view> words, Answer answer) = 0;
  /// Hands out the answers that have arrived. Returns whether there were any.
  virtual bool poll() = 0;
  virtual bool is_connected() const = 0;
};

struct RedisSinkOptions {
  uint32_t in_flight = 4'096;               ///< jobs that are being written at the same time
  Millis lease = std::chrono::seconds{30};  ///< renewed while Redis has not answered
};

/// Writes jobs to lists and streams in Redis, for consumers that read those by themselves. Once Redis has a
/// job it is done here.
///
/// At least once: a job is done only when Redis has confirmed it. When the connection is lost before that,
/// the jobs are given back to their places in line and written again later, though the first time may have
/// been carried out. What Redis refuses (a key of another type, a missing permission) counts as a failure of
/// the job, and follows the topic's retry policy.
///
/// A command that was sent cannot be undone, and Redis may need long for many of them, so the leases are
/// renewed.
///
/// Jobs of a topic are written in the order in which they are handed out; jobs that are tried again come
/// after the others.
class RedisSink final : public Sink {
 public:
  /// The target must outlive the sink.
  RedisSink(RedisTarget& target, RedisSinkOptions options) : target_(target), options_(options) {}

  bool takes(Outlet outlet, const EffectiveSettings& topic) const override;
  Room room(Moment now) override;
  LeaseTerms lease_terms(const EffectiveSettings& topic) const override;
  uint32_t first_batch() const override { return 64; }
  size_t send(const Origin& origin, const Claim& claim, std::span<const SinkJob> jobs, Moment now) override;
  bool poll(Moment now) override;

  /// Changes the bounds, for jobs that are taken from now on.
  void set_options(RedisSinkOptions options) { options_ = options; }
  /// Called once when Redis goes away, with the reason, and once when it is back, with an empty text.
  void set_log(std::function<void(std::string_view why)> log) { log_ = std::move(log); }
  SinkFigures figures() const;

 private:
  /// The jobs of one command.
  struct Flight {
    std::vector<Ticket> tickets;
    std::string command;  ///< "RPUSH orders", for the outcome
    size_t bytes = 0;
  };

  void write_list(const Origin& origin, std::string_view key, std::span<const SinkJob> jobs);
  void write_stream(const Origin& origin, std::string_view key, std::span<const SinkJob> jobs);
  void call(std::string_view key, std::span<const std::string_view> words, Flight flight);
  void ended(uint64_t number, const Result<std::string>& result);

  RedisTarget& target_;
  RedisSinkOptions options_;
  Moment now_{};  ///< of the poll() that hands out answers
  absl::flat_hash_map<uint64_t, Flight> flights_;
  uint64_t last_flight_ = 0;
  size_t bytes_ = 0;  ///< of all flights
  std::function<void(std::string_view why)> log_;
};

}  // namespace delayq::delivery
