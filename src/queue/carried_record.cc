#include "queue/carried_record.h"

#include <fmt/format.h>

#include "queue/msgpack.h"

namespace delayq {

namespace {

/// The stored form is an array: flags, the key (if there is one), then for each header its name and a value
/// or, without one, `false`.
constexpr uint64_t kHasKey = 1;
constexpr uint64_t kIsTombstone = 2;
constexpr uint64_t kKnownFlags = kHasKey | kIsTombstone;

}  // namespace

Status encode_carried_record(const CarriedRecord& record, std::string& out) {
  if (record.headers.size() > kCarriedHeaders) {
    return Error{ErrorCode::kTooLarge,
                 {},
                 fmt::format("the record has {} headers to carry: at most {} are allowed",
                             record.headers.size(), kCarriedHeaders)};
  }
  const size_t before = out.size();
  MsgpackWriter writer{out};
  writer.array(static_cast<uint32_t>(1 + record.key.has_value() + 2 * record.headers.size()));
  writer.uint((record.key ? kHasKey : 0) | (record.is_tombstone ? kIsTombstone : 0));
  if (record.key) writer.text(*record.key);
  for (const CarriedRecord::Header& header : record.headers) {
    writer.text(header.name);
    if (header.value) {
      writer.text(*header.value);
    } else {
      writer.boolean(false);
    }
  }
  const size_t bytes = out.size() - before;
  if (bytes <= kCarriedBytes) return {};
  out.resize(before);
  return Error{ErrorCode::kTooLarge,
               {},
               fmt::format("the record's key and headers have {} bytes: at most {} can be carried", bytes,
                           kCarriedBytes)};
}

std::optional<CarriedRecord> decode_carried_record(std::string_view bytes) {
  CarriedRecord record;
  MsgpackReader reader{bytes};
  uint32_t items = reader.array();
  if (items == 0) return std::nullopt;
  const uint64_t flags = reader.uint();
  --items;
  if (!reader.ok() || (flags & ~kKnownFlags) != 0) return std::nullopt;
  record.is_tombstone = (flags & kIsTombstone) != 0;
  if ((flags & kHasKey) != 0) {
    if (items == 0) return std::nullopt;
    record.key = reader.text();
    --items;
  }
  if (items % 2 != 0 || items / 2 > kCarriedHeaders) return std::nullopt;
  for (; items > 0 && reader.ok(); items -= 2) {
    CarriedRecord::Header header{reader.text(), std::nullopt};
    if (reader.is_text()) {
      header.value = reader.text();
    } else if (reader.boolean()) {
      return std::nullopt;
    }
    record.headers.push_back(header);
  }
  if (!reader.complete()) return std::nullopt;
  return record;
}

}  // namespace delayq
