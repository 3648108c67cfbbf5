// A directory of three segments, edited by the input: it opens or says why not; check() and repair() come to
// an end; what is repaired opens; and what opens can be looked at and run.
//
// The input is a script of five-byte edits: what to do, to which segment, where (two bytes), and with what.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/journal/check.h"
#include "engine/journal/journal_engine.h"
#include "tests/support/engine_driver.h"
#include "tests/support/segment_builder.h"
#include "tests/support/stepped_io.h"
#include "tests/support/virtual_disk.h"

namespace delayq {
namespace {

using support::at;
using support::JobSpec;
using support::SegmentBuilder;

void require(bool condition) {
  if (!condition) __builtin_trap();
}

using Segments = std::vector<std::vector<std::byte>>;

/// The head, a stream of survivors, and the head again; all record types.
Segments sound_directory() {
  SegmentBuilder first(1);
  first.job(JobSpec("mail", "a").due_at(at(50)).with_body("body")).mark();
  first.job(JobSpec("mail", "b").in_group("g").with_options("o")).settings("mail", "s").mark();
  first.outcome(2, "broken").gone(4, 1).settings("mail", "");
  first.schedule("s", "rule", 7).schedule("gone", "rule", 7).gone(11, 1);
  const auto turn = [](SegmentBuilder& group) { group.turned(10, 8, at(70), "p").job(JobSpec("t", "s@1")); };
  first.group(turn);
  SegmentBuilder kept(2, 20, 2);
  kept.job(JobSpec("mail", "a").due_at(at(90)).with_body("body"), 2).mark().gone(7, 1);
  kept.schedule("s", "rule", 8, 10);
  SegmentBuilder last(3, 40);
  journal::StatePayload state = SegmentBuilder::state_of(2, at(90), JobState::kReserved);
  state.until_ms = to_unix_ms(at(5000));
  state.lease = 77;
  last.state(state).job(JobSpec("push", "c")).mark().job(JobSpec("push", "d")).turned(10, 9, at(80), "q");
  const auto redefine = [](SegmentBuilder& group) {
    group.schedule("s", "other", 10).gone(10, 2).job(JobSpec("t", "s@2")).gone(15, 1);
  };
  last.group(redefine).zeros(64);
  return {first.bytes(), kept.bytes(), last.bytes()};
}

/// Gives the record at (or behind) `at` a good checksum again, so that edits get past it; in a group, also
/// the group.
void reseal(std::span<std::byte> records, size_t at, uint32_t nonce) {
  for (size_t place = 0; place + journal::kRecordHeaderSize <= records.size();) {
    journal::RecordHeader record;
    std::memcpy(&record, records.data() + place, sizeof record);
    const size_t whole = journal::kRecordHeaderSize + size_t{record.size};
    if (whole > records.size() - place) return;
    if (place + whole > at) {
      const std::span<std::byte> found = records.subspan(place, whole);
      const size_t inside = place + journal::kRecordHeaderSize;
      if (record.type() == journal::RecordType::kGroup && at >= inside)
        reseal(found.subspan(journal::kRecordHeaderSize), at - inside, nonce);
      return journal::seal_record(found, nonce, record.type(), record.lsn());
    }
    place += whole;
  }
}

void reseal(std::vector<std::byte>& bytes, size_t at) {
  if (bytes.size() < journal::kSegmentHeaderSize) return;
  uint32_t nonce = 0;
  std::memcpy(&nonce, bytes.data() + 12, sizeof nonce);
  const size_t header = journal::kSegmentHeaderSize;
  reseal(std::span(bytes).subspan(header), at < header ? 0 : at - header, nonce);
}

void edit(Segments& segments, std::span<const uint8_t> step) {
  std::vector<std::byte>& bytes = segments[step[1] % segments.size()];
  const size_t where = (size_t{step[2]} << 8 | step[3]) % (bytes.size() + 1);
  const auto value = static_cast<std::byte>(step[4]);
  switch (step[0] % 6) {
    case 0:
      if (where < bytes.size()) bytes[where] ^= value;
      break;
    case 1:  // with a good checksum
      if (where < bytes.size()) bytes[where] ^= value;
      reseal(bytes, where);
      break;
    case 2:
      bytes.resize(where);
      break;
    case 3:
      bytes.insert(bytes.begin() + static_cast<ptrdiff_t>(where), step[4], value);
      break;
    case 4:  // a piece of one segment in another
      for (size_t i = 0; i < size_t{step[4]} && where + i < bytes.size(); ++i) {
        const auto& from = segments[(step[1] + 1U) % segments.size()];
        if (where + i < from.size()) bytes[where + i] = from[where + i];
      }
      break;
    default:
      for (size_t i = where; i < bytes.size() && i < where + size_t{step[4]}; ++i) bytes[i] = std::byte{0};
  }
}

/// Looks at everything and lets every job run. Throws when an answer does not come.
void use(journal::JournalEngine& engine, support::SteppedIo& io) {
  support::EngineDriver driver(engine, [&] {
    const bool read = io.step(journal::Lane::kRead);
    return io.step(journal::Lane::kWrite) || read;
  });
  for (const std::string& topic : driver.topic_names()) {
    for (size_t state = 0; state < kJobStateCount; ++state) {
      for (const std::string& id : driver.ids_in(topic, static_cast<JobState>(state))) {
        require(driver.get(topic, id).has_value());
      }
    }
  }
  driver.load_settings();
  driver.go_to(at(1'000'000));
  driver.tick();
  for (const StoredSchedule& schedule : driver.list_schedules({}).schedules) {
    require(driver.get_schedule(schedule.name) == schedule);
    const TurnRequest removal{.name = schedule.name, .expected = schedule.revision};
    require(driver.turn(removal).outcome == TurnOutcome::kTurned);
  }
  for (const std::string& topic : driver.topic_names()) {
    for (const support::Taken& taken : driver.take(topic, 100)) {
      require(driver.ack(taken, support::kKeepNone) == AckOutcome::kAcked);
    }
  }
}

bool open_and_use(support::VirtualDisk& disk) {
  support::SteppedIo io;
  journal::JournalOptions options;
  options.segment_bytes = 4096;
  options.disk_reserve = 0;
  auto engine = journal::JournalEngine::open(disk, io, options, support::kStart);
  if (!engine.ok()) {
    require(!engine.error().detail.empty());
    return false;
  }
  use(**engine, io);
  return true;
}

std::unique_ptr<support::VirtualDisk> disk_with(const Segments& segments) {
  auto disk = std::make_unique<support::VirtualDisk>(1);
  for (uint32_t i = 0; i < segments.size(); ++i) {
    SegmentBuilder::save_file(*disk, journal::segment_name(i + 1), segments[i]);
  }
  return disk;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kStep = 5;
  Segments segments = sound_directory();
  for (size_t i = 0; i + kStep <= size && i < 64 * kStep; i += kStep)
    edit(segments, std::span(data + i, kStep));

  const auto checked = disk_with(segments);
  const Result<journal::CheckReport> report = journal::check(*checked);
  const auto opened = disk_with(segments);
  const bool opens = open_and_use(*opened);
  if (report.ok()) require(opens == report->is_clean());
  if (opens) require(open_and_use(*opened));

  if (!journal::repair(*checked).ok()) return 0;
  const Result<journal::CheckReport> after = journal::check(*checked);
  require(after.ok() && after->is_clean());
  require(open_and_use(*checked));
  return 0;
}

}  // namespace delayq
