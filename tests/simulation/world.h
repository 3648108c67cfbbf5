#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "engine/journal/journal_engine.h"
#include "queue/queue.h"
#include "tests/simulation/checked_engine.h"
#include "tests/simulation/model.h"
#include "tests/simulation/witness.h"
#include "tests/support/stepped_io.h"
#include "tests/support/virtual_disk.h"
#include "tests/support/virtual_shelf.h"

namespace delayq::simulation {

/// How a life of the server ends.
enum class End : uint8_t {
  kStop,      ///< in good order: stopped, flushed, closed
  kClose,     ///< closed without a word to anybody
  kKill,      ///< the process dies, the machine goes on
  kPowerCut,  ///< the machine dies
};
std::string_view name_of(End end);

/// The server with everything around it: a clock, a disk, lanes that move step by step, and the model that it
/// is compared with. Clock, disk and model live on from one life of the server to the next.
class World {
 public:
  World(uint64_t seed, journal::JournalOptions options, Witness& witness);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// Begins a life: recovers, compares what survived with what may have, and starts the queue. An error is
  /// what the engine said; anything else that is wrong goes to the witness.
  Status open();
  /// `then_power_cut`: also after a good end, which must not matter.
  void end(End how, bool then_power_cut = false);
  bool is_open() const { return queue_ != nullptr; }
  /// Whether the last life was stopped in good order, with everything flushed.
  bool ended_well() const { return ended_well_; }
  /// Number of the present life; callbacks of an earlier one mean nothing.
  uint64_t life() const { return life_; }

  Queue& queue() { return *queue_; }
  CheckedEngine& checked() { return *checked_; }
  /// Whether nothing has gone wrong with the disk in this life: a journal whose disk did may have failed
  /// without anyone having been told so yet.
  bool is_sound() const { return disk_.faults_fired() == faults_at_opening_ && !is_off(); }
  support::VirtualDisk& disk() { return disk_; }
  support::SteppedIo& io() { return *io_; }
  const Model& model() const { return model_; }
  Witness& witness() { return witness_; }
  const journal::JournalOptions& options() const { return options_; }

  Moment now() const { return now_; }
  void set_now(Moment now) { now_ = now; }
  /// Ticks; answers when the server wants to be called next.
  Moment tick();
  /// Lets disk and queue go on until neither has anything to do, or the machine is off.
  void settle();
  /// See CheckedEngine: for while the disk is full or unreadable.
  void set_careful(bool careful);
  bool is_careful() const { return careful_; }
  /// A job that was acked on hand-over and then could not be read becomes dead, which the model does not
  /// know.
  void allow_auto_ack(bool allowed) { auto_ack_ = allowed; }
  bool may_auto_ack() const { return auto_ack_; }
  /// Asks the engine for every job there should be; `judge` gets each with the answer.
  using Judge =
      std::function<void(const support::SeenJob& should, const Result<std::optional<FoundJob>>& found)>;
  void look_up_all(const Judge& judge);
  /// Lets the server copy its data, and looks at the copy. An error is what the server said.
  void back_up(std::function<void(const Status&)> done);
  bool is_backing_up() const { return !backup_.empty(); }
  /// Whether the planned end of this life has come, or the disk stopped answering.
  bool is_off() const { return disk_.stopped(); }

 private:
  bool pump();
  void check_copy(support::VirtualDisk& copy);
  std::string may_take(const TakeRequest& request) const;
  void stop_queue();

  Witness& witness_;
  journal::JournalOptions options_;
  uint64_t seed_;
  Moment now_;
  support::VirtualDisk disk_;
  support::VirtualShelf shelf_;
  uint64_t backups_ = 0;
  std::string backup_;  // under way
  Model model_;
  uint64_t life_ = 0;
  uint64_t faults_at_opening_ = 0;
  bool careful_ = false;
  bool auto_ack_ = true;
  bool ended_well_ = false;
  bool certain_ = true;  // what the next life finds is on the disk

  // One life, in the order of construction.
  std::unique_ptr<support::SteppedIo> io_;
  std::unique_ptr<journal::JournalEngine> engine_;
  std::unique_ptr<CheckedEngine> checked_;
  std::unique_ptr<Queue> queue_;
};

}  // namespace delayq::simulation
