#include "tests/simulation/faults.h"

#include <array>

namespace delayq::simulation {

using support::DiskFault;

namespace {

DiskFault any_fault(Random& random) {
  constexpr std::array kFaults{DiskFault::kWrite,    DiskFault::kWrite,        DiskFault::kSync,
                               DiskFault::kSync,     DiskFault::kCreate,       DiskFault::kRemove,
                               DiskFault::kAllocate, DiskFault::kSyncDirectory};
  return kFaults[random.below(kFaults.size())];
}

}  // namespace

void Faults::before_opening() {
  // What could not be read can be again: the first look around a new life expects an answer to everything.
  if (trouble_ == Trouble::kUnreadable) world_.disk().forget_faults();
  world_.disk().set_cache_misses(random_.chance(1, 3) ? static_cast<unsigned>(random_.below(257)) : 0);
  if (random_.chance(1, 10)) world_.disk().stop_after(random_.below(12));
  if (random_.chance(1, 20)) world_.disk().fail(any_fault(random_), random_.below(4));
}

void Faults::begin_life() {
  world_.disk().forget_faults();
  ends_in_ = 0;
  const uint64_t dice = random_.below(20);
  trouble_ = dice < 8    ? Trouble::kStop
             : dice < 12 ? Trouble::kFailedOperation
             : dice < 14 ? Trouble::kFullDisk
             : dice < 16 ? Trouble::kUnreadable
                         : Trouble::kNone;
  world_.allow_auto_ack(trouble_ != Trouble::kUnreadable);
  begins_in_ = random_.between(1, 150);
}

void Faults::pass() {
  if (ends_in_ > 0 && --ends_in_ == 0) end_episode();
  if (begins_in_ > 0 && --begins_in_ == 0) begin(trouble_);
}

void Faults::begin(Trouble trouble) {
  switch (trouble) {
    case Trouble::kNone:
      return;
    case Trouble::kStop:
      return world_.disk().stop_after(random_.below(30));
    case Trouble::kFailedOperation: {
      const DiskFault fault = any_fault(random_);
      return world_.disk().fail(
          fault, random_.below(fault == DiskFault::kWrite || fault == DiskFault::kSync ? 30 : 4));
    }
    case Trouble::kFullDisk:
      world_.set_careful(true);
      if (!world_.is_careful()) return;
      world_.witness().say("the disk is nearly full");
      world_.disk().set_capacity(world_.disk().used_bytes() +
                                 random_.below(world_.options().segment_bytes * 4));
      ends_in_ = random_.between(20, 100);
      return;
    case Trouble::kUnreadable:
      world_.set_careful(true);
      if (!world_.is_careful()) return;
      world_.disk().set_cache_misses(128);
      world_.disk().fail(DiskFault::kRead, random_.below(10));
      ends_in_ = random_.between(20, 100);
      return;
  }
}

void Faults::end_episode() {
  if (!world_.is_careful()) return;
  world_.witness().say("the trouble with the disk is over");
  world_.disk().set_capacity(UINT64_MAX);
  world_.disk().forget_faults();
  // The engine learns of the new room from its next commit, or looks for it once in a while.
  Settings settings;
  settings.attempts = 3;
  world_.queue().set_settings(world_.now(), "t1", settings, [](const Result<void>&) {});
  world_.set_now(world_.now() + Millis{2'000});
  world_.tick();
  world_.settle();
  world_.set_careful(false);
}

End Faults::choose_end() {
  constexpr std::array kEnds{End::kStop, End::kStop, End::kClose, End::kKill, End::kPowerCut};
  return kEnds[random_.below(kEnds.size())];
}

}  // namespace delayq::simulation
