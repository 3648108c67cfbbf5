#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/simulation/scene.h"

namespace delayq::simulation {

/// Those who take jobs: in time, too late, twice, or not at all.
class Consumer {
 public:
  explicit Consumer(Scene& scene) : scene_(scene) {}

  void pop();
  /// One who waits goes away.
  void drop();
  void ack();
  void nack();
  void extend();

  /// Those who wait are gone with the server. Their leases are remembered: somebody may still try.
  void forget_waiters() { waiting_.clear(); }
  /// What must be so when nothing is under way and the server has looked at its clock: nobody waits for a job
  /// that is ready, or longer than asked for.
  void check_at_rest();
  /// The clock went back: then waits get longer by up to that much.
  void clock_went_back() { clock_is_even_ = false; }
  uint64_t handed_over() const { return handed_over_; }

 private:
  struct Waiting {
    WaiterId waiter = 0;
    std::vector<std::string> topics;
    uint32_t count = 1;
    bool auto_ack = false;
    Outlet outlet = Outlet::kTopic;
    Moment until{};
  };

  /// The part of somebody who calls jobs back.
  void take_for_delivery();
  void give_back();
  void receive(Scene::Ticket ticket, const PopAnswer& answer);
  std::string some_lease();
  const memory::StoredJob* find_job_for(const Waiting& waiting) const;

  Scene& scene_;
  std::map<Scene::Ticket, Waiting> waiting_;
  std::vector<std::string> leases_;  // lately given out, current or not
  bool clock_is_even_ = true;        // since the oldest waiter came
  uint64_t handed_over_ = 0;
};

}  // namespace delayq::simulation
