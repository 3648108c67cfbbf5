#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include "core/random.h"
#include "delivery/redis/figures.h"
#include "delivery/redis/target.h"
#include "delivery/settlement.h"
#include "delivery/sources.h"
#include "queue/queue.h"

namespace delayq::redis_delivery {

struct PusherOptions {
  uint32_t in_flight = 4'096;               ///< jobs that are being written at the same time
  Millis lease = std::chrono::seconds{30};  ///< renewed while Redis has not answered
  Millis first_rest{100};                   ///< after Redis was away, twice as long each time
  Millis longest_rest = std::chrono::seconds{5};
};

/// Delivers ready jobs by writing them to lists and streams in Redis, for consumers that read those by
/// themselves: takes them from the queue under a lease, writes them in batches, and tells the queue what came
/// of it. Once Redis has a job it is done here.
///
/// At least once: a job is done only when Redis has said so. When Redis is away in the middle of it, the jobs
/// are given back uncounted, to their places in line, and written again when it has returned, though the
/// first time may have been carried out. While it is away nothing is taken. What Redis refuses (a key of
/// another type, a user who may not) counts as a failure of the job, and follows the topic's retry policy.
///
/// A command that was sent cannot be taken back, and Redis may answer a long line of them slowly. So leases
/// of jobs that are being written are renewed when half of their time is over. A job whose take was answered
/// too late for that is not written, but given back.
///
/// Jobs of a topic are written in the order in which they are handed out, those that are tried again after
/// the others.
///
/// Threads and time: as the queue. The loop calls tick() and poll() beside the queue's.
class Pusher final : public DeliveryListener {
 public:
  /// All must outlive the pusher. It is, or hears from, the queue's listener (before start()).
  Pusher(Queue& queue, Target& target, PusherOptions options, uint64_t seed);

  void on_deliverable(std::string_view topic, Outlet outlet) override;

  /// Takes jobs while there is room. Answers when it wants to be called next, if nothing comes in before.
  Moment tick(Moment now);
  /// Hears what Redis has said. Answers whether there was anything.
  bool poll(Moment now);
  /// Takes nothing from now on. What is being written may be answered within `grace`; what is left of it
  /// shortly before its end is given back.
  void stop(Moment now, Millis grace);

  /// Other bounds for what is taken from now on.
  void set_options(PusherOptions options) { options_ = options; }
  /// Told once when Redis goes away, with the reason, and once when it is back, with nothing.
  void set_log(std::function<void(std::string_view why)> log) { log_ = std::move(log); }
  Figures figures() const;

 private:
  struct Item {
    std::string lease;
    Moment due{};  ///< its place in line
  };
  /// The jobs of one command.
  struct Flight {
    std::vector<Item> items;
    std::string command;  ///< "RPUSH orders", for the outcome
    size_t bytes = 0;
    Moment until = kNever;  ///< when the first of the leases ends
  };

  bool can_send() const;
  uint32_t room() const;
  void ask(delivery::Source& source);
  void taken(delivery::Source& source, uint32_t asked, Result<PopAnswer> answer);
  void write(delivery::Source& source, const std::vector<TakenJob>& jobs);
  void send(std::string_view key, std::span<const std::string_view> words, Flight flight);
  void ended(uint64_t number, const Result<std::string>& result);
  void went_away(const Error& error);
  /// Renews the leases that have less than half of their time left.
  void renew_leases();
  void give_back(Flight& flight);

  Queue& queue_;
  Target& target_;
  PusherOptions options_;
  Random random_;
  Moment now_{};
  delivery::Sources sources_;
  delivery::Settlement settlement_;
  absl::flat_hash_map<uint64_t, Flight> flights_;
  uint64_t last_flight_ = 0;
  uint32_t taking_ = 0;   ///< jobs that the queue was asked for
  size_t in_flight_ = 0;  ///< jobs of all flights
  size_t bytes_ = 0;      ///< of all flights
  Millis rest_{};         ///< how long the last rest was; zero: the last command was answered
  Moment rest_until_{};
  Moment next_renewal_ = kNever;  ///< when to look for leases to renew; kNever: nothing is being written
  bool stopping_ = false;
  Moment stop_at_ = kNever;
  std::function<void(std::string_view why)> log_;
  Figures figures_;
};

}  // namespace delayq::redis_delivery
