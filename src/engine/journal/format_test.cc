#include "engine/journal/format.h"

#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/segment_builder.h"

namespace delayq::journal {
namespace {

using support::JobSpec;
using support::SegmentBuilder;

constexpr uint32_t kNonce = 0xabcdef01;

SegmentHeader sample_header() {
  SegmentHeader header;
  header.stream = 3;
  header.nonce = kNonce;
  header.number = 42;
  header.epoch = 7;
  header.first_lsn = 123'456'789;
  header.created_ms = -5;
  header.previous = 41;
  header.previous_size = 9'000'000'000;
  return header;
}

std::vector<std::byte> sample_record(std::string_view payload, Lsn lsn = 99) {
  std::vector<std::byte> record(kRecordHeaderSize + payload.size());
  std::memcpy(record.data() + kRecordHeaderSize, payload.data(), payload.size());
  seal_record(record, kNonce, RecordType::kOutcome, lsn);
  return record;
}

TEST(SegmentHeader, is_read_as_written) {
  const SegmentHeader header = sample_header();
  std::array<std::byte, kSegmentHeaderSize> bytes;
  header.encode(bytes);
  const auto read = SegmentHeader::decode(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->version, kFormatVersion);
  EXPECT_EQ(read->stream, header.stream);
  EXPECT_EQ(read->nonce, header.nonce);
  EXPECT_EQ(read->number, header.number);
  EXPECT_EQ(read->epoch, header.epoch);
  EXPECT_EQ(read->first_lsn, header.first_lsn);
  EXPECT_EQ(read->created_ms, header.created_ms);
  EXPECT_EQ(read->previous, header.previous);
  EXPECT_EQ(read->previous_size, header.previous_size);
}

TEST(SegmentHeader, every_flipped_bit_is_noticed) {
  std::array<std::byte, kSegmentHeaderSize> bytes;
  sample_header().encode(bytes);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    EXPECT_FALSE(SegmentHeader::decode(bytes)) << "bit " << bit;
    bytes[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
  }
}

TEST(SegmentName, is_read_as_written) {
  EXPECT_EQ(segment_name(42), "segment-0000000042");
  for (const uint32_t number : {1U, 42U, 4'294'967'295U})
    EXPECT_EQ(parse_segment_name(segment_name(number)), number);
}

TEST(SegmentName, nothing_else_is_one) {
  for (const std::string_view name :
       {"", "lock", "segment-", "segment-42", "segment-0000000000", "segment-00000000042",
        "segment-000000004x", "segment- 000000042", "segment--000000042", "segment-+000000042",
        "segment-4294967296", "segment-0000000042.damaged", "Segment-0000000042"}) {
    EXPECT_FALSE(parse_segment_name(name)) << name;
  }
}

RC_GTEST_PROP(Record, is_read_as_written, (const std::string& payload)) {
  const Lsn lsn = *rc::gen::inRange<Lsn>(1, kMaxLsn);
  std::vector<std::byte> record = sample_record(payload, lsn);
  record.resize(record.size() + 5);  // bytes after the record are ignored
  const auto read = read_record(record, kNonce);
  RC_ASSERT(read.has_value());
  RC_ASSERT(read->lsn == lsn);
  RC_ASSERT(read->type == RecordType::kOutcome);
  RC_ASSERT(as_text(read->payload) == payload);
  RC_ASSERT(read->size() == kRecordHeaderSize + payload.size());
}

TEST(Record, every_flipped_bit_is_noticed) {
  std::vector<std::byte> record = sample_record("some text of a moderate length, as outcomes are");
  record.resize(record.size() + 300, std::byte{0x5a});  // so that a larger size still finds bytes
  const size_t whole = record.size() - 300;
  for (size_t bit = 0; bit < whole * 8; ++bit) {
    record[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    EXPECT_FALSE(read_record(record, kNonce)) << "bit " << bit;
    record[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
  }
  EXPECT_TRUE(read_record(record, kNonce));
}

TEST(Record, one_of_another_segment_does_not_count) {
  EXPECT_FALSE(read_record(sample_record("leftover"), kNonce + 1));
}

TEST(Record, a_part_of_one_is_none) {
  const std::vector<std::byte> record = sample_record("text");
  for (size_t size = 0; size < record.size(); ++size) {
    EXPECT_FALSE(read_record(std::span(record).first(size), kNonce)) << size;
  }
}

TEST(Record, zeros_are_none) { EXPECT_FALSE(read_record(std::vector<std::byte>(64), 0)); }

TEST(Record, numbers_out_of_range_are_none) {
  EXPECT_FALSE(read_record(sample_record("x", 0), kNonce));
  EXPECT_TRUE(read_record(sample_record("x", kMaxLsn), kNonce));
  EXPECT_FALSE(read_record(sample_record("x", kMaxLsn + 1), kNonce));
}

RC_GTEST_PROP(JobRecord, is_read_as_written, ()) {
  JobSpec spec;
  const auto text = [](size_t most) {
    return *rc::gen::resize(static_cast<int>(most), rc::gen::arbitrary<std::string>());
  };
  spec.topic = text(200);
  spec.id = text(255);
  spec.group = text(255);
  spec.options = text(1000);
  spec.body = text(2000);
  spec.priority = *rc::gen::arbitrary<uint32_t>();
  SegmentBuilder segment(1);
  const std::vector<std::byte> bytes = segment.job(spec).bytes();
  const auto record = read_record(std::span(bytes).subspan(segment.last()), segment.header().nonce);
  RC_ASSERT(record && record->type == RecordType::kJob);
  const auto job = parse_job(record->payload);
  RC_ASSERT(job.has_value());
  RC_ASSERT(job->topic == spec.topic);
  RC_ASSERT(job->id == spec.id);
  RC_ASSERT(job->group == spec.group);
  RC_ASSERT(job->options == spec.options);
  RC_ASSERT(job->body == spec.body);
  RC_ASSERT(job->fixed.priority == spec.priority);
}

TEST(JobRecord, lengths_beyond_its_end_are_refused) {
  JobPayload fixed{};
  fixed.topic_size = 1;
  fixed.id_size = 1;
  std::vector<std::byte> payload(sizeof fixed + 2);
  std::memcpy(payload.data(), &fixed, sizeof fixed);
  EXPECT_TRUE(parse_job(payload));
  EXPECT_FALSE(parse_job(std::span(payload).first(sizeof fixed + 1)));
  EXPECT_FALSE(parse_job(std::span(payload).first(sizeof fixed - 1)));
}

TEST(JobRecord, an_unknown_state_is_refused) {
  JobPayload fixed{};
  fixed.state.state = static_cast<JobState>(kJobStateCount);
  std::vector<std::byte> payload(sizeof fixed);
  std::memcpy(payload.data(), &fixed, sizeof fixed);
  EXPECT_FALSE(parse_job(payload));
}

TEST(OutcomeRecord, has_a_state_and_a_text) {
  const StatePayload state = SegmentBuilder::state_of(7, support::kStart, JobState::kDead);
  std::string payload(reinterpret_cast<const char*>(&state), sizeof state);
  payload += "broken";
  const auto outcome = parse_outcome(std::as_bytes(std::span(payload)));
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->state.seq, 7U);
  EXPECT_EQ(outcome->state.state, JobState::kDead);
  EXPECT_EQ(outcome->text, "broken");
  EXPECT_FALSE(parse_outcome(std::as_bytes(std::span(payload)).first(sizeof state - 1)));
  payload[offsetof(StatePayload, state)] = static_cast<char>(kJobStateCount);
  EXPECT_FALSE(parse_outcome(std::as_bytes(std::span(payload))));
}

TEST(SettingsRecord, has_a_topic_and_a_text) {
  const std::string payload = "\x04mailpaused";
  const auto settings = parse_settings(std::as_bytes(std::span(payload)));
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->topic, "mail");
  EXPECT_EQ(settings->settings, "paused");
  EXPECT_FALSE(parse_settings(std::as_bytes(std::span(payload)).first(4)));
  EXPECT_FALSE(parse_settings({}));
}

TEST(PlainRecord, must_have_exactly_its_size) {
  std::vector<std::byte> payload(sizeof(GonePayload));
  EXPECT_TRUE(parse_plain<GonePayload>(payload));
  payload.resize(payload.size() + 1);
  EXPECT_FALSE(parse_plain<GonePayload>(payload));
  payload.resize(payload.size() - 2);
  EXPECT_FALSE(parse_plain<GonePayload>(payload));
}

RC_GTEST_PROP(Schedule, is_read_as_written, (const std::string& progress, const std::string& definition)) {
  ScheduleView view{};
  view.fixed.number = 5;
  view.fixed.revision = UINT64_MAX;
  view.fixed.next_ms = INT64_MAX;
  view.name = "nightly";
  view.progress = progress;
  view.definition = definition;
  std::vector<std::byte> bytes(payload_size(view));
  write_payload(bytes, view);
  const auto read = parse_schedule(bytes);
  RC_ASSERT(read.has_value());
  RC_ASSERT(read->fixed.revision == UINT64_MAX && read->fixed.next_ms == INT64_MAX);
  RC_ASSERT(read->name == "nightly" && read->progress == progress && read->definition == definition);
  const size_t least = bytes.size() - definition.size();
  RC_ASSERT(parse_schedule(std::span(bytes).first(least)).has_value());
  RC_ASSERT(!parse_schedule(std::span(bytes).first(least - 1)));
}

TEST(Turned, is_read_as_written) {
  const TurnedView view{{7, 8, -9}, "progress"};
  std::vector<std::byte> bytes(payload_size(view));
  write_payload(bytes, view);
  const auto read = parse_turned(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->fixed.number, 7U);
  EXPECT_EQ(read->fixed.revision, 8U);
  EXPECT_EQ(read->fixed.next_ms, -9);
  EXPECT_EQ(read->progress, "progress");
  EXPECT_FALSE(parse_turned(std::span(bytes).first(sizeof(TurnedPayload) - 1)));
}

std::vector<std::byte> group_of(const std::vector<std::vector<std::byte>>& records) {
  std::vector<std::byte> payload;
  for (const std::vector<std::byte>& record : records)
    payload.insert(payload.end(), record.begin(), record.end());
  return payload;
}

size_t read_as_group(std::span<const std::byte> payload) {
  std::array<GroupedRecord, kMostInGroup> room;
  return read_group({RecordType::kGroup, 98, payload}, kNonce, room).size();
}

TEST(Group, has_its_records_or_is_none) {
  const std::vector<std::byte> one = sample_record("one", 99);
  const std::vector<std::byte> two = sample_record("two", 100);
  EXPECT_EQ(read_as_group(group_of({one, two})), 2U);
  EXPECT_EQ(read_as_group({}), 0U);
  EXPECT_EQ(read_as_group(group_of({two, one})), 0U) << "numbered otherwise";
  const std::vector<std::byte> both = group_of({one, two});
  EXPECT_EQ(read_as_group(std::span(both).first(one.size() + 5)), 0U) << "cut off";
  for (const RecordType type : {RecordType::kMark, RecordType::kHole, RecordType::kGroup}) {
    std::vector<std::byte> other = two;
    seal_record(other, kNonce, type, 100);
    EXPECT_EQ(read_as_group(group_of({one, other})), 0U) << static_cast<int>(type);
  }
  std::vector<std::vector<std::byte>> many;
  for (Lsn lsn = 99; many.size() <= kMostInGroup; ++lsn) many.push_back(sample_record("x", lsn));
  EXPECT_EQ(read_as_group(group_of(many)), 0U);
  many.pop_back();
  EXPECT_EQ(read_as_group(group_of(many)), kMostInGroup);
}

}  // namespace
}  // namespace delayq::journal
