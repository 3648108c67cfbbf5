#include "engine/journal/backup.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace delayq::journal {

namespace {

constexpr uint64_t kPiece = 1u << 20;

}  // namespace

void Backup::start(Order order, Done done) {
  auto copy = std::make_shared<Copy>();
  copy->report.path = order.shelf->path_of(order.name);
  copy->report.jobs = order.jobs;
  copy->order = std::move(order);
  copy->done = std::move(done);
  for (auto& [number, segment] : segments_) {
    if (segment->file == nullptr || segment->durable == 0) continue;
    copy->sources.push_back({segment_name(number), segment->file, segment->durable});
    copy->report.bytes += segment->durable;
    copy->manifest.segments[number] = {segment->header.nonce, segment->durable};
    copy->manifest.highest = number;
  }
  copy->manifest.directory = copy->order.directory;
  copy->manifest.epoch = copy->order.epoch;
  copy->report.files = copy->sources.size() + 1;
  copy->report.bytes += copy->manifest.encode().size();
  next(std::move(copy));
}

void Backup::next(std::shared_ptr<Copy> copy) {
  Copy* const work = copy.get();
  io_.run(
      Lane::kCopy, [work] { work->outcome = work->step(); },
      [this, copy = std::move(copy)]() mutable { after_step(std::move(copy)); });
}

void Backup::after_step(std::shared_ptr<Copy> copy) {
  if (copy->outcome.ok() && !copy->is_complete && !stops_) return next(std::move(copy));
  if (copy->is_complete) {
    is_reserved_ = false;
    return copy->done(copy->report);
  }
  // Close the files before they are removed.
  Copy* const work = copy.get();
  io_.run(
      Lane::kCopy,
      [work] {
        work->file.reset();
        work->target.reset();
        if (work->outcome.ok() || work->outcome.error().code != ErrorCode::kConflict)
          work->order.shelf->abandon(work->order.name);
      },
      [this, copy = std::move(copy)] {
        is_reserved_ = false;
        if (stops_ && copy->outcome.ok()) return;
        Error error = copy->outcome.error();
        error.op = "backup";
        copy->done(std::move(error));
      });
}

Status Backup::Copy::step() {
  if (target == nullptr) return begin();
  if (at == sources.size()) return finish();
  return copy_piece();
}

Status Backup::Copy::begin() {
  Result<std::unique_ptr<Disk>> begun = order.shelf->begin(order.name);
  if (!begun.ok()) return begun.error();
  target = std::move(*begun);
  const Result<uint64_t> room = target->free_bytes();
  if (!room.ok()) return room.error();
  if (*room >= report.bytes && *room - report.bytes >= order.disk_reserve) return {};
  return Error{ErrorCode::kDiskFull, "backup",
               fmt::format("{} has {} MiB left, the copy needs {} MiB, and {} MiB are kept free", report.path,
                           *room >> 20, (report.bytes >> 20) + 1, order.disk_reserve >> 20)};
}

Status Backup::Copy::copy_piece() {
  const Source& source = sources[at];
  if (file == nullptr) {
    Result<std::shared_ptr<File>> created = target->create(source.name);
    if (!created.ok()) return created.error();
    file = std::move(*created);
    offset = 0;
  }
  piece.resize(std::min(kPiece, source.size - offset));
  const Result<size_t> got = source.file->read(offset, piece);
  if (!got.ok()) return got.error();
  if (*got != piece.size()) {
    return Error{
        ErrorCode::kCorrupt, "backup",
        fmt::format("{} ends at offset {}, before what had been synced", source.name, offset + *got)};
  }
  if (Status status = file->write(offset, piece); !status.ok()) return status;
  if (Status status = file->sync(); !status.ok()) return status;
  offset += piece.size();
  if (offset < source.size) return {};
  file.reset();
  sources[at++].file.reset();  // frees the disk space of a segment that was removed meanwhile
  return {};
}

Status Backup::Copy::finish() {
  if (Status status = target->sync_directory(); !status.ok()) return status;
  if (Status status = manifest.write(*target); !status.ok()) return status;
  target.reset();
  if (Status status = order.shelf->finish(order.name); !status.ok()) return status;
  is_complete = true;
  return {};
}

}  // namespace delayq::journal
