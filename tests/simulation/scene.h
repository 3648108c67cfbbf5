#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/random.h"
#include "tests/simulation/world.h"

namespace delayq::simulation {

/// What a seed's workload is like.
struct Shape {
  uint32_t topics = 3;
  uint32_t ids = 20;  ///< few, so that they meet; the same in all topics
  uint32_t groups = 3;
  uint32_t body_bytes = 200;  ///< most bodies are shorter
  uint32_t actions = 200;     ///< in one life
  uint32_t lives = 5;
  uint32_t disk_eagerness = 3;  ///< steps of the lanes for every client's verb, in tenths
  bool ticks_late = false;      ///< clients may come with a new time before the server looked at its clock

  static Shape random(Random& random);
};

/// The clients' part of a simulation: names to choose from, and who still waits for an answer.
class Scene {
 public:
  Scene(World& world, Random& random, Shape shape) : world_(world), random_(random), shape_(shape) {}

  World& world() { return world_; }
  Queue& queue() { return world_.queue(); }
  Random& random() { return random_; }
  const Shape& shape() const { return shape_; }
  Moment now() const { return world_.now(); }

  // ---- things to choose
  std::string topic() { return topic(random_); }
  std::string id();
  std::string group() { return group(random_); }
  /// The same, drawn from another stream of random numbers.
  std::string topic(Random& random) const;
  std::string group(Random& random) const;
  /// Starts with a text of its own, so that no two jobs are alike.
  std::string body();
  /// From nothing to years, by magnitude.
  Millis delay();
  bool chance(uint32_t of_100) { return random_.below(100) < of_100; }

  // ---- answers
  using Ticket = uint64_t;
  Ticket ask(std::string verb);
  /// Notes the answer; false when the asker was gone or had one already (then the witness knows).
  bool answered(Ticket ticket);
  void withdraw(Ticket ticket) { open_.erase(ticket); }
  bool is_open(Ticket ticket) const { return open_.contains(ticket); }
  /// What was asked in an earlier life is never answered.
  void forget_open() { open_.clear(); }
  const std::map<Ticket, std::string>& open() const { return open_; }
  uint64_t asked() const { return last_ticket_; }

  /// An answer that is an error, where the world gives no reason for one.
  void check_error(std::string_view verb, const Error& error);
  void fail(std::string_view verb, const std::string& what);

  template <class Line>
  void say(Line line) {
    if (world_.witness().tracing()) world_.witness().say(line());
  }

 private:
  World& world_;
  Random& random_;
  Shape shape_;
  uint64_t last_body_ = 0;
  Ticket last_ticket_ = 0;
  std::map<Ticket, std::string> open_;
};

}  // namespace delayq::simulation
