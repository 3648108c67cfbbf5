// Any bytes as the rest of a segment: read_record() finds nothing that is not all there, and the payload
// parsers, which see only what has a good checksum, are given whatever the input holds.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/journal/format.h"

namespace delayq::journal {
namespace {

void require(bool condition) {
  if (!condition) __builtin_trap();
}

void check_payload(std::span<const std::byte> payload) {
  if (const auto job = parse_job(payload)) {
    const size_t strings =
        job->topic.size() + job->id.size() + job->group.size() + job->options.size() + job->body.size();
    require(sizeof(JobPayload) + strings == payload.size());
    require(static_cast<size_t>(job->fixed.state.state) < delayq::kJobStateCount);
  }
  if (const auto outcome = parse_outcome(payload)) {
    require(sizeof(StatePayload) + outcome->text.size() == payload.size());
  }
  if (const auto settings = parse_settings(payload)) {
    require(1 + settings->topic.size() + settings->settings.size() == payload.size());
  }
  if (const auto schedule = parse_schedule(payload)) {
    require(payload_size(*schedule) == payload.size());
    std::vector<std::byte> again(payload.size());
    write_payload(again, *schedule);
    require(parse_schedule(again).has_value());
  }
  if (const auto turned = parse_turned(payload)) require(payload_size(*turned) == payload.size());
  require(parse_plain<StatePayload>(payload).has_value() == (payload.size() == sizeof(StatePayload)));
  require(parse_plain<GonePayload>(payload).has_value() == (payload.size() == sizeof(GonePayload)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  if (size >= kSegmentHeaderSize) {
    if (const auto header = SegmentHeader::decode(bytes.first<kSegmentHeaderSize>())) {
      std::vector<std::byte> again(kSegmentHeaderSize);
      header->encode(std::span(again).first<kSegmentHeaderSize>());
      require(SegmentHeader::decode(std::span(again).first<kSegmentHeaderSize>()).has_value());
    }
  }
  if (const auto record = read_record(bytes, 0)) {
    require(record->size() <= size);
    check_payload(record->payload);
  }
  std::array<GroupedRecord, kMostInGroup> room;
  for (const auto& [record, offset] : read_group({RecordType::kGroup, 1, bytes}, 0, room)) {
    require(offset >= kRecordHeaderSize && offset - kRecordHeaderSize + record.size() <= size);
    check_payload(record.payload);
  }
  check_payload(bytes);
  // The same bytes with a good checksum, as a writer with a defect would leave them.
  std::vector<std::byte> sealed(kRecordHeaderSize + size);
  for (size_t i = 0; i < size; ++i) sealed[kRecordHeaderSize + i] = bytes[i];
  seal_record(sealed, 7, RecordType::kJob, 1);
  const auto record = read_record(sealed, 7);
  require(record && record->payload.size() == size);
  require(!read_record(std::span(sealed).first(sealed.size() - 1), 7));
  return 0;
}

}  // namespace delayq::journal
