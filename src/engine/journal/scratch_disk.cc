#include "engine/journal/scratch_disk.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace delayq::journal {

namespace {

/// The bytes of the original file up to where it was cut, with the newer writes over them.
class ScratchFile final : public File {
 public:
  /// Without a base: a new file.
  ScratchFile(std::shared_ptr<File> base, uint64_t size)
      : base_(std::move(base)), base_size_(size), size_(size) {}

  Status write(uint64_t offset, std::span<const std::byte> bytes) override {
    const std::lock_guard lock(mutex_);
    pieces_.push_back({offset, {bytes.begin(), bytes.end()}});
    size_ = std::max(size_, offset + bytes.size());
    return {};
  }
  Status sync() override { return {}; }

  Result<size_t> read(uint64_t offset, std::span<std::byte> into) override {
    const std::lock_guard lock(mutex_);
    if (offset >= size_) return size_t{0};
    into = into.first(std::min<uint64_t>(into.size(), size_ - offset));
    std::fill(into.begin(), into.end(), std::byte{0});
    if (offset < base_size_) {
      Result<size_t> got =
          base_->read(offset, into.first(std::min<uint64_t>(into.size(), base_size_ - offset)));
      if (!got.ok()) return got;
    }
    for (const Piece& piece : pieces_) lay_over(piece, offset, into);
    return into.size();
  }
  bool read_cached(uint64_t, std::span<std::byte>) override { return false; }

  Result<uint64_t> size() override {
    const std::lock_guard lock(mutex_);
    return size_;
  }
  Status allocate(uint64_t size) override {
    const std::lock_guard lock(mutex_);
    size_ = std::max(size_, size);
    return {};
  }
  Status truncate(uint64_t size) override {
    const std::lock_guard lock(mutex_);
    size_ = size;
    base_size_ = std::min(base_size_, size);
    std::erase_if(pieces_, [size](const Piece& piece) { return piece.offset >= size; });
    for (Piece& piece : pieces_)
      piece.bytes.resize(std::min<uint64_t>(piece.bytes.size(), size - piece.offset));
    return {};
  }

 private:
  struct Piece {
    uint64_t offset;
    std::vector<std::byte> bytes;
  };

  static void lay_over(const Piece& piece, uint64_t offset, std::span<std::byte> into) {
    const uint64_t begin = std::max(piece.offset, offset);
    const uint64_t end = std::min(piece.offset + piece.bytes.size(), offset + into.size());
    if (begin >= end) return;
    std::memcpy(into.data() + (begin - offset), piece.bytes.data() + (begin - piece.offset), end - begin);
  }

  std::mutex mutex_;
  std::shared_ptr<File> base_;
  uint64_t base_size_;         ///< end of the part of the base that is still used
  uint64_t size_;              ///< bytes that were never written read as zeros
  std::vector<Piece> pieces_;  ///< where they overlap, the later piece counts
};

Error failure(std::string_view op, std::string_view name, std::string_view what) {
  return {ErrorCode::kUnavailable, fmt::format("disk.{}", op), fmt::format("{}: {}", name, what), {}};
}

}  // namespace

Result<std::vector<std::string>> ScratchDisk::list() {
  Result<std::vector<std::string>> names = base_->list();
  if (!names.ok()) return names;
  const std::lock_guard lock(mutex_);
  std::erase_if(*names, [this](const std::string& name) { return gone_.contains(name); });
  for (const auto& [name, file] : files_) {
    if (std::find(names->begin(), names->end(), name) == names->end()) names->push_back(name);
  }
  return names;
}

Result<std::shared_ptr<File>> ScratchDisk::create(std::string_view name) {
  const Result<std::vector<std::string>> names = list();
  if (!names.ok()) return names.error();
  if (std::find(names->begin(), names->end(), name) != names->end())
    return failure("create", name, "it exists");
  auto file = std::make_shared<ScratchFile>(nullptr, 0);
  const std::lock_guard lock(mutex_);
  files_[std::string(name)] = file;
  return std::shared_ptr<File>(std::move(file));
}

Result<std::shared_ptr<File>> ScratchDisk::open(std::string_view name) {
  const std::lock_guard lock(mutex_);
  if (const auto found = files_.find(name); found != files_.end()) return found->second;
  if (gone_.contains(name)) return failure("open", name, "it was removed");
  Result<std::shared_ptr<File>> base = base_->open(name);
  if (!base.ok()) return base;
  const Result<uint64_t> size = (*base)->size();
  if (!size.ok()) return size.error();
  std::shared_ptr<File> file = std::make_shared<ScratchFile>(*std::move(base), *size);
  files_[std::string(name)] = file;
  return file;
}

Status ScratchDisk::remove(std::string_view name) {
  if (const auto file = open(name); !file.ok()) return file.error();
  const std::lock_guard lock(mutex_);
  files_.erase(files_.find(name));
  gone_.emplace(name);
  return {};
}

Status ScratchDisk::rename(std::string_view from, std::string_view to) {
  const auto file = open(from);
  if (!file.ok()) return file.error();
  const std::lock_guard lock(mutex_);
  files_.erase(files_.find(from));
  gone_.emplace(from);
  files_[std::string(to)] = *file;
  return {};
}

}  // namespace delayq::journal
