// The format is a promise to every existing directory: a committed directory must stay readable, and the same
// calls must write the same bytes. After a deliberate change of the format, with a new version number, run
// this test with DELAYQ_WRITE_GOLDEN=1 to write a directory for it, and keep the old one.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/moment.h"
#include "engine/journal/check.h"
#include "tests/support/journal_on_disk.h"
#include "tests/support/segment_builder.h"

namespace delayq::journal {
namespace {

using support::at;
using support::EngineDriver;
using support::JobSpec;
using support::JournalOnDisk;
using support::kStart;
using support::SeenJob;
using support::SegmentBuilder;
using Files = std::map<std::string, std::string>;

const std::filesystem::path kSources{DELAYQ_SOURCE_FOLDER};
const std::filesystem::path kTestData = kSources / "src/engine/journal/testdata";
/// Written by the current program; by one that did not record when jobs ended; and by one without manifests.
/// The version is the same: each of these programs reads what the others wrote.
const std::filesystem::path kGolden = kTestData / "golden-v1-ends";
/// What it writes of schedules.
const std::filesystem::path kScheduled = kTestData / "golden-v1-schedules";
const std::filesystem::path kBeforeEnds = kTestData / "golden-v1-manifest";
const std::filesystem::path kBeforeManifests = kTestData / "golden-v1";

/// One commit per verb: all records of a verb are on disk before the next verb.
template <class Verb>
void then(JournalOnDisk& on_disk, Verb verb) {
  verb(*on_disk.driver);
  on_disk.settle();
}

void first_life(JournalOnDisk& on_disk) {
  on_disk.open(kStart);
  then(on_disk, [](EngineDriver& d) { d.push(JobSpec("mail", "a").due_at(at(60'000)).with_body("hello")); });
  then(on_disk, [](EngineDriver& d) {
    d.push_all(
        {JobSpec("mail", "b").with_priority(7).with_body("run me"),
         JobSpec("mail", "c").due_at(at(86'400'000 * 3)).in_group("order-17").with_options("\x81\x01\x02")});
  });
  then(on_disk, [](EngineDriver& d) { d.store_settings("mail", "paused=0"); });
  then(on_disk, [](EngineDriver& d) { d.store_settings("old", "x"); });
  then(on_disk, [](EngineDriver& d) { d.store_settings("old", ""); });
  support::Taken taken;
  then(on_disk, [&](EngineDriver& d) { taken = d.take_one("mail"); });
  then(on_disk, [&](EngineDriver& d) { d.retry(taken, at(5000), "connection refused"); });
  then(on_disk, [](EngineDriver& d) {
    d.push(JobSpec("mail", "a").due_at(at(90'000)).with_body("hello again").or_replace());
  });
  then(on_disk, [](EngineDriver& d) { d.push(JobSpec("sms", "gone").due_at(at(60'000))); });
  then(on_disk, [](EngineDriver& d) { d.cancel("sms", "gone"); });
  then(on_disk, [](EngineDriver& d) { d.push(JobSpec("sms", "dead")); });
  then(on_disk, [&](EngineDriver& d) { taken = d.take_one("sms"); });
  then(on_disk, [&](EngineDriver& d) { d.bury(taken, "no such number"); });
  for (int i = 0; i < 40; ++i) {
    const std::string id = std::to_string(i);
    then(on_disk, [&](EngineDriver& d) {
      d.push(JobSpec("churn", id).due_at(at(60'000)).with_body(std::string(100, '.')));
    });
    if (i % 5 != 0) then(on_disk, [&](EngineDriver& d) { d.cancel("churn", id); });
  }
  on_disk.close();
}

void second_life(JournalOnDisk& on_disk) {
  on_disk.open(at(10'000));
  support::Taken taken;
  then(on_disk, [&](EngineDriver& d) { taken = d.take_one("mail", std::chrono::hours{1}); });
  then(on_disk, [](EngineDriver& d) { d.cancel("mail", "b"); });
  then(on_disk, [](EngineDriver& d) { d.reschedule("mail", "c", at(86'400'000)); });
  on_disk.close();
}

/// A turn of the schedule "nightly" to the revision after `expected`, with a job.
void make_occurrence(JournalOnDisk& on_disk, uint64_t expected, Overlap overlap) {
  const auto moment = [](uint64_t number) { return at(static_cast<int64_t>(number) * 60'000); };
  const JobSpec job = JobSpec("report", occurrence_id("nightly", moment(expected)))
                          .due_at(moment(expected))
                          .with_body("daily")
                          .or_keep();
  const std::string previous = occurrence_id("nightly", moment(expected - 1));
  TurnRequest turn{.name = "nightly", .expected = expected, .revision = expected + 1};
  turn.next = moment(expected + 1);
  const std::string progress = "runs=" + std::to_string(expected);
  turn.progress = progress;
  turn.job = job.view();
  turn.previous = JobRef{"report", previous};
  turn.overlap = overlap;
  then(on_disk, [&](EngineDriver& d) { d.turn(turn); });
}

void life_with_schedules(JournalOnDisk& on_disk) {
  on_disk.open(kStart);
  const auto define = [&](std::string_view name, uint64_t expected, std::string_view definition) {
    TurnRequest turn{.name = name, .expected = expected, .revision = expected + 1, .next = at(60'000)};
    turn.definition = definition;
    turn.progress = "runs=0";
    then(on_disk, [&](EngineDriver& d) { d.turn(turn); });
  };
  define("nightly", 0, "0 2 * * *");
  make_occurrence(on_disk, 1, Overlap::kAllow);
  make_occurrence(on_disk, 2, Overlap::kReplace);
  const JobSpec large = JobSpec("churn", "large").due_at(at(60'000)).with_body(std::string(700, '.'));
  then(on_disk, [&](EngineDriver& d) { d.push(large); });
  define("weekly", 0, "@weekly");
  define("weekly", 1, "0 9 * * 1");
  define("old", 0, "@hourly");
  then(on_disk, [](EngineDriver& d) { d.turn({.name = "old", .expected = 1}); });
  then(on_disk,
       [](EngineDriver& d) { d.cancel("churn", "large"); });  // its segment is worth a compaction now
  for (int i = 0; i < 40; ++i) {
    const std::string id = std::to_string(i);
    then(on_disk, [&](EngineDriver& d) {
      d.push(JobSpec("churn", id).due_at(at(60'000)).with_body(std::string(100, '.')));
    });
    if (i % 2 != 0) then(on_disk, [&](EngineDriver& d) { d.cancel("churn", id); });
  }
  make_occurrence(on_disk, 3, Overlap::kAllow);
  define("weekly", 2, "0 10 * * 1");
  on_disk.close();
}

Files files_of(Disk& disk) {
  Files files;
  for (const std::string& name : support::file_names(disk)) {
    const std::vector<std::byte> bytes = support::file_bytes(disk, name);
    files[name] = as_text(bytes);
  }
  return files;
}

Files written_today() {
  JournalOnDisk on_disk(17);
  on_disk.options.segment_bytes = 1024;
  first_life(on_disk);
  second_life(on_disk);
  return files_of(on_disk.disk);
}

Files schedules_written_today() {
  JournalOnDisk on_disk(17);
  on_disk.options.segment_bytes = 1024;
  life_with_schedules(on_disk);
  return files_of(on_disk.disk);
}

Files files_in(const std::filesystem::path& directory) {
  Files files;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    std::ifstream in(entry.path(), std::ios::binary);
    files[entry.path().filename()] = {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  return files;
}

void load_golden(JournalOnDisk& on_disk, const std::filesystem::path& directory) {
  for (const auto& [name, bytes] : files_in(directory)) {
    SegmentBuilder::save_file(on_disk.disk, name, std::as_bytes(std::span(bytes)));
  }
}

SeenJob job(std::string topic, std::string id, Moment due, std::string body) {
  SeenJob seen;
  seen.topic = std::move(topic);
  seen.id = std::move(id);
  seen.due = due;
  seen.body = std::move(body);
  seen.pushed = kStart;
  seen.priority = kDefaultPriority;
  return seen;
}

void expect_the_bytes_of(const std::filesystem::path& directory, const Files& today) {
  if (std::getenv("DELAYQ_WRITE_GOLDEN") != nullptr) {
    std::filesystem::remove_all(directory);
    std::filesystem::create_directories(directory);
    for (const auto& [name, bytes] : today) std::ofstream(directory / name, std::ios::binary) << bytes;
  }
  const Files golden = files_in(directory);
  ASSERT_GE(golden.size(), 4U);
  for (const auto& [name, bytes] : golden) {
    ASSERT_TRUE(today.contains(name)) << name;
    const std::string& written = today.at(name);
    const auto [a, b] = std::mismatch(bytes.begin(), bytes.end(), written.begin(), written.end());
    EXPECT_EQ(written.size(), bytes.size()) << name;
    EXPECT_TRUE(a == bytes.end() && b == written.end()) << name << " differs at offset " << a - bytes.begin();
  }
  EXPECT_EQ(today.size(), golden.size());
}

TEST(Golden, the_same_life_is_written_as_the_same_bytes) { expect_the_bytes_of(kGolden, written_today()); }

TEST(Golden, the_same_schedules_are_written_as_the_same_bytes) {
  expect_the_bytes_of(kScheduled, schedules_written_today());
}

/// How many records of each type, also in groups, and which streams.
struct Seen {
  std::map<RecordType, int> types;
  std::map<uint16_t, int> streams;
};

void see(const std::filesystem::path& directory, Seen& seen) {
  for (const auto& [name, bytes] : files_in(directory)) {
    if (!parse_segment_name(name)) continue;
    const auto all = std::as_bytes(std::span(bytes));
    const auto header = SegmentHeader::decode(all.first<kSegmentHeaderSize>());
    ASSERT_TRUE(header) << name;
    ++seen.streams[header->stream];
    size_t offset = kSegmentHeaderSize;
    while (const auto record = read_record(all.subspan(offset), header->nonce)) {
      ++seen.types[record->type];
      offset += record->size();
      if (record->type != RecordType::kGroup) continue;
      std::array<GroupedRecord, kMostInGroup> room;
      for (const auto& [grouped, place] : read_group(*record, header->nonce, room))
        ++seen.types[grouped.type];
    }
  }
}

TEST(Golden, has_every_record_type_and_a_stream_of_survivors) {
  Seen seen;
  see(kGolden, seen);
  EXPECT_GE(seen.streams.size(), 2U);
  see(kScheduled, seen);
  for (const RecordType type :
       {RecordType::kMark, RecordType::kJob, RecordType::kState, RecordType::kOutcome, RecordType::kGone,
        RecordType::kSettings, RecordType::kGroup, RecordType::kSchedule, RecordType::kTurned}) {
    EXPECT_GT(seen.types[type], 0) << static_cast<int>(type);
  }
  EXPECT_TRUE(seen.streams.contains(kStreamCount - 1)) << "no definition was copied";
}

TEST(Golden, schedules_are_understood) {
  JournalOnDisk on_disk;
  load_golden(on_disk, kScheduled);
  const Result<CheckReport> report = check(on_disk.disk);
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->is_clean()) << to_string(*report);
  EXPECT_EQ(report->schedules, 2U);
  EngineDriver& driver = on_disk.open(at(20'000));
  EXPECT_EQ(driver.get_schedule("nightly"),
            (StoredSchedule{"nightly", 4, at(240'000), "0 2 * * *", "runs=3"}));
  EXPECT_EQ(driver.get_schedule("weekly"), (StoredSchedule{"weekly", 3, at(60'000), "0 10 * * 1", "runs=0"}));
  EXPECT_EQ(driver.get_schedule("old"), std::nullopt);
  EXPECT_EQ(driver.ids_in("report", JobState::kDelayed),
            (std::vector{occurrence_id("nightly", at(120'000)), occurrence_id("nightly", at(180'000))}));
  EXPECT_EQ(driver.get("report", occurrence_id("nightly", at(180'000)))->body, "daily");
}

class GoldenDirectory : public testing::TestWithParam<std::filesystem::path> {};
INSTANTIATE_TEST_SUITE_P(Directories, GoldenDirectory,
                         testing::Values(kGolden, kBeforeEnds, kBeforeManifests), [](const auto& tested) {
                           return std::string(tested.param == kGolden       ? "today"
                                              : tested.param == kBeforeEnds ? "before_ends"
                                                                            : "before_manifests");
                         });

TEST_P(GoldenDirectory, is_understood) {
  JournalOnDisk on_disk;
  load_golden(on_disk, GetParam());
  EngineDriver& driver = on_disk.open(at(20'000));

  EXPECT_EQ(driver.get("mail", "a"), job("mail", "a", at(90'000), "hello again"));

  SeenJob reserved = job("mail", "b", at(5000), "run me");
  reserved.priority = 7;
  reserved.attempts = 2;
  reserved.state = JobState::kReserved;
  reserved.until = at(10'000) + std::chrono::hours{1};
  reserved.cancel_requested = true;
  reserved.outcome = "connection refused";
  EXPECT_EQ(driver.get("mail", "b"), reserved);

  SeenJob grouped = job("mail", "c", at(86'400'000), "");
  grouped.group = "order-17";
  grouped.options = "\x81\x01\x02";
  EXPECT_EQ(driver.get("mail", "c"), grouped);

  const auto dead = driver.get("sms", "dead");
  ASSERT_TRUE(dead);
  EXPECT_EQ(dead->state, JobState::kDead);
  EXPECT_EQ(dead->outcome, "no such number");
  EXPECT_EQ(dead->attempts, 1U);
  TrimRequest an_hour;
  an_hour.topic = "sms";
  an_hour.state = JobState::kDead;
  an_hour.count = 9;
  an_hour.time = std::chrono::hours{1};
  EXPECT_EQ(driver.trim(an_hour), 0U);
  // Where it is not known, the current time counts
  const Moment ended = GetParam() == kGolden ? kStart : at(20'000);
  EXPECT_EQ(driver.get("sms", "dead")->until, ended + std::chrono::hours{1});

  EXPECT_EQ(driver.ids_in("churn", JobState::kDelayed).size(), 8U);
  for (int i = 0; i < 40; i += 5)
    EXPECT_EQ(driver.get("churn", std::to_string(i))->body, std::string(100, '.')) << i;
  EXPECT_EQ(on_disk.engine->usage().jobs, 12U);

  const auto settings = driver.load_settings();
  ASSERT_EQ(settings.size(), 1U);
  EXPECT_EQ(settings[0].topic, "mail");
  EXPECT_EQ(settings[0].settings, "paused=0");

  EXPECT_EQ(driver.cancel_group("order-17").cancelled, 1U);
}

TEST_P(GoldenDirectory, is_clean) {
  JournalOnDisk on_disk;
  load_golden(on_disk, GetParam());
  const Result<CheckReport> report = check(on_disk.disk);
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->is_clean()) << to_string(*report);
  EXPECT_EQ(report->torn_bytes, 0U);
}

TEST_P(GoldenDirectory, misses_each_of_its_segments_once_it_has_a_manifest) {
  for (const auto& [name, bytes] : files_in(GetParam())) {
    if (!parse_segment_name(name)) continue;
    JournalOnDisk on_disk;
    load_golden(on_disk, GetParam());
    on_disk.open(at(20'000));
    on_disk.close();
    ASSERT_TRUE(on_disk.disk.remove(name).ok());
    const Result<bool> opened = on_disk.try_open(at(20'000));
    ASSERT_FALSE(opened.ok()) << name;
    EXPECT_NE(opened.error().detail.find(name), std::string::npos) << opened.error().detail;
  }
}

/// A line of a dump: "00000040  a1 b2 ...  description". Two spaces end the bytes.
struct DumpLine {
  size_t offset = 0;
  std::vector<std::string> bytes;
};

std::optional<DumpLine> parse_dump_line(const std::string& line) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  if (line.size() < 12 || line.find_first_not_of(kDigits) != 8 || line.compare(8, 2, "  ") != 0)
    return std::nullopt;
  DumpLine dump{std::stoul(line, nullptr, 16), {}};
  std::istringstream numbers(line.substr(10, line.find("  ", 10) - 10));
  for (std::string number; numbers >> number;) dump.bytes.push_back(number);
  return dump;
}

TEST(Golden, the_examples_in_the_document_are_its_bytes) {
  std::ifstream document(kSources / "docs/internals/journal-format.md");
  ASSERT_TRUE(document) << "docs/internals/journal-format.md is missing";
  Files golden = files_in(kGolden);
  for (const auto& [name, bytes] : files_in(kScheduled)) golden[kScheduled.filename() / name] = bytes;
  std::string file;
  size_t compared = 0;
  for (std::string line; std::getline(document, line);) {
    if (line.starts_with("File `")) file = line.substr(6, line.find('`', 6) - 6);
    const auto dump = parse_dump_line(line);
    if (!dump) continue;
    ASSERT_TRUE(golden.contains(file)) << file;
    size_t offset = dump->offset;
    for (const std::string& number : dump->bytes) {
      ASSERT_LT(offset, golden.at(file).size()) << line;
      EXPECT_EQ(number, fmt::format("{:02x}", static_cast<uint8_t>(golden.at(file)[offset++]))) << line;
      ++compared;
    }
  }
  EXPECT_GE(compared, 200U) << "the document has no worked example";
}

}  // namespace
}  // namespace delayq::journal
