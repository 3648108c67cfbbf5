#include "tests/simulation/rot.h"

#include <algorithm>
#include <charconv>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/journal/check.h"
#include "engine/journal/segments.h"
#include "tests/simulation/survey.h"
#include "tests/support/engine_driver.h"

namespace delayq::simulation {
namespace {

using support::VirtualDisk;

constexpr uint64_t kSmallestRecord = 32;

std::optional<uint64_t> offset_in(std::string_view message) {
  constexpr std::string_view kBefore = "offset ";
  const size_t at = message.find(kBefore);
  if (at == std::string_view::npos) return std::nullopt;
  message.remove_prefix(at + kBefore.size());
  uint64_t offset = 0;
  const auto [end, error] = std::from_chars(message.data(), message.data() + message.size(), offset);
  return error == std::errc() ? std::optional(offset) : std::nullopt;
}

/// A journal that has failed does nothing any more, not even what time alone brings: what has come due since
/// is still delayed. Nobody may know yet that it has, when nothing was asked that it had to refuse.
support::SeenJob without_the_clock(support::SeenJob job) {
  if (job.state == JobState::kReady) job.state = JobState::kDelayed;
  return job;
}

}  // namespace

bool Rot::strike_closed() {
  const std::optional<VirtualDisk::Damage> damage = world_.disk().flip_bit();
  if (!damage) return false;
  const Status opened = world_.open();
  if (opened.ok()) return true;  // in bytes that do not matter; whether that is so, opening has checked
  check_refusal(*damage, opened.error());
  if (!world_.witness().failed()) try_repair(*damage);
  world_.end(End::kKill);
  world_.disk().undo(*damage);
  return false;
}

void Rot::misplace_closed() {
  // A segment that the manifest does not name is being begun: nothing in it was answered, and it may be
  // there or not.
  const Result<std::optional<journal::Manifest>> manifest = journal::Manifest::read(world_.disk());
  if (!manifest.ok() || !*manifest) return;
  const auto belongs = [&](const std::string& name) {
    const std::optional<uint32_t> number = journal::parse_segment_name(name);
    return number ? (*manifest)->segments.contains(*number) : name == journal::Manifest::kName;
  };
  const std::optional<VirtualDisk::Mishap> mishap = world_.disk().misplace(belongs);
  if (!mishap) return;
  check_misplaced(*mishap);
  world_.disk().put_back();
}

void Rot::check_misplaced(const VirtualDisk::Mishap& mishap) {
  const auto fail = [&](const std::string& what) {
    world_.witness().fail(fmt::format("{} of {}: {}", mishap.what, fmt::join(mishap.files, ", "), what));
  };
  const auto is_named = [&](const std::string& message) {
    return std::any_of(mishap.files.begin(), mishap.files.end(),
                       [&](const std::string& file) { return message.find(file) != std::string::npos; });
  };
  const std::unique_ptr<VirtualDisk> copy = world_.disk().clone(random_.next());
  support::SteppedIo io;
  {
    const auto opened = journal::JournalEngine::open(*copy, io, world_.options(), world_.now());
    if (opened.ok()) return fail("the server starts");
    if (opened.error().code != ErrorCode::kCorrupt || !is_named(opened.error().detail))
      return fail(to_string(opened.error()));
  }
  const Result<journal::CheckReport> found = journal::check(*copy);
  if (!found.ok() || found->is_clean() || !is_named(to_string(*found))) return fail("check does not find it");
  if (const auto repaired = journal::repair(*copy); !repaired.ok())
    return fail("repair: " + to_string(repaired.error()));
  if (const auto opened = journal::JournalEngine::open(*copy, io, world_.options(), world_.now());
      !opened.ok())
    return fail("open after repair: " + to_string(opened.error()));
}

void Rot::check_refusal(const VirtualDisk::Damage& damage, const Error& error) {
  world_.witness().say("  refused: " + error.detail);
  const std::optional<uint64_t> offset = offset_in(error.detail);
  const bool names_it =
      error.detail.find(damage.file) != std::string::npos && offset && *offset <= damage.offset;
  if (error.code == ErrorCode::kCorrupt && names_it) return;
  world_.witness().fail(fmt::format("open: bit {} of {} at {} is wrong, and the message is: {}", damage.bit,
                                    damage.file, damage.offset, to_string(error)));
}

void Rot::try_repair(const VirtualDisk::Damage& damage) {
  const std::unique_ptr<VirtualDisk> copy = world_.disk().clone(random_.next());
  const Result<journal::CheckReport> found = journal::check(*copy);
  if (!found.ok() || found->is_clean()) return world_.witness().fail("check: does not find the damage");
  uint64_t damaged_bytes = 0;
  bool names_it = false;
  for (const journal::Damage& each : found->damage) {
    damaged_bytes += each.bytes;
    names_it |= each.segment == damage.file && each.offset <= damage.offset;
  }
  if (!names_it) return world_.witness().fail("check: finds damage somewhere else");
  const Result<journal::CheckReport> repaired = journal::repair(*copy);
  if (!repaired.ok()) return world_.witness().fail("repair: " + to_string(repaired.error()));

  support::SteppedIo io;
  const auto opened = journal::JournalEngine::open(*copy, io, world_.options(), world_.now());
  if (!opened.ok()) return world_.witness().fail("open after repair: " + to_string(opened.error()));
  const Result<Survey> survey = take_survey(**opened, world_.now(), [&] {
    io.step(journal::Lane::kWrite);
    io.step(journal::Lane::kRead);
    return true;
  });
  if (!survey.ok()) return world_.witness().fail("after repair: " + survey.error().detail);
  const uint64_t different = world_.model().count_differences(*survey);
  if (different > damaged_bytes / kSmallestRecord) {
    world_.witness().fail(
        fmt::format("repair: gave up {} bytes, and {} jobs are gone or different", damaged_bytes, different));
  }
}

void Rot::strike_running() {
  const std::optional<VirtualDisk::Damage> damage = world_.disk().flip_bit();
  if (!damage) return;
  world_.look_up_all([&](const support::SeenJob& should, const Result<std::optional<FoundJob>>& found) {
    if (!found.ok() && found.error().code == ErrorCode::kCorrupt) return;
    if (found.ok() && found->has_value()) {
      const support::SeenJob is = support::seen((*found)->job);
      if (is == should || (!world_.is_sound() && is == without_the_clock(should))) return;
    }
    world_.witness().fail(fmt::format("get: with bit {} of {} at {} wrong, {} looks like {}", damage->bit,
                                      damage->file, damage->offset, to_string(should),
                                      !found.ok()           ? to_string(found.error())
                                      : !found->has_value() ? "no job"
                                                            : to_string(support::seen((*found)->job))));
  });
  world_.disk().undo(*damage);
}

}  // namespace delayq::simulation
