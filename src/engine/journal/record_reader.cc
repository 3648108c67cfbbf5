#include "engine/journal/record_reader.h"

#include <algorithm>
#include <numeric>

namespace delayq::journal {

namespace {

/// Reading a small gap together with its neighbours is cheaper than a second call.
constexpr uint64_t kLargestGap = 1024;
constexpr uint64_t kLargestRange = 256 * 1024;

std::span<std::byte> as_bytes(std::span<char> chars) { return std::as_writable_bytes(chars); }

}  // namespace

void RecordReader::read(const std::vector<Location>& wanted, Then then) {
  auto request = std::make_unique<Request>();
  request->then = std::move(then);
  plan(wanted, *request);
  bool all_there = true;
  for (Range& range : request->ranges) {
    range.is_read = range.file->read_cached(range.offset, range.bytes);
    all_there &= range.is_read;
  }
  if (all_there) {
    finish(*request);
    return;
  }
  Request* waiting = request.get();
  io_.run(
      Lane::kRead,
      [waiting] {
        for (Range& range : waiting->ranges) {
          if (range.is_read) continue;
          const Result<size_t> got = range.file->read(range.offset, range.bytes);
          if (!got.ok()) range.status = got.error();
          range.is_read = got.ok() && *got == range.bytes.size();
        }
      },
      [request = std::move(request)] { finish(*request); });
}

void RecordReader::plan(const std::vector<Location>& wanted, Request& request) {
  request.pieces.resize(wanted.size());
  std::vector<uint32_t> order;
  order.reserve(wanted.size());
  for (uint32_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].segment == 0) continue;
    const Segment* segment = segments_.find(wanted[i].segment);
    if (segment == nullptr) continue;
    Piece& piece = request.pieces[i];
    piece.nonce = segment->header.nonce;
    if (const auto buffered = log_.find_buffered(wanted[i]); !buffered.empty()) {
      const std::string_view copy = request.storage.copy(as_text(buffered));
      piece.bytes = std::as_bytes(std::span{copy});
    } else if (segment->file != nullptr) {
      order.push_back(i);
    }
  }
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::pair{wanted[a].segment, wanted[a].offset} < std::pair{wanted[b].segment, wanted[b].offset};
  });
  for (size_t first = 0; first < order.size();) {
    const Location& start = wanted[order[first]];
    uint64_t end = start.offset + uint64_t{start.size};
    size_t last = first + 1;
    for (; last < order.size(); ++last) {
      const Location& next = wanted[order[last]];
      if (next.segment != start.segment || next.offset > end + kLargestGap) break;
      const uint64_t next_end = std::max(end, next.offset + uint64_t{next.size});
      if (next_end - start.offset > kLargestRange) break;
      end = next_end;
    }
    const auto number = static_cast<uint32_t>(request.ranges.size());
    const std::span<std::byte> bytes = as_bytes(request.storage.allocate(end - start.offset));
    request.ranges.push_back({segments_.find(start.segment)->file, start.offset, bytes, false, {}});
    for (; first < last; ++first) {
      const Location& location = wanted[order[first]];
      Piece& piece = request.pieces[order[first]];
      piece.bytes = bytes.subspan(location.offset - start.offset, location.size);
      piece.range = number;
    }
  }
}

void RecordReader::finish(Request& request) {
  Found found;
  for (const Range& range : request.ranges) {
    if (range.status.ok()) continue;
    found.status = Error{ErrorCode::kUnavailable, "journal.read", range.status.error().detail};
    return request.then(std::move(found));
  }
  found.records.reserve(request.pieces.size());
  for (const Piece& piece : request.pieces) {
    const bool is_there = piece.range == UINT32_MAX || request.ranges[piece.range].is_read;
    found.records.push_back(is_there ? read_record(piece.bytes, piece.nonce) : std::nullopt);
  }
  found.storage = std::move(request.storage);
  request.then(std::move(found));
}

}  // namespace delayq::journal
