#include "tests/support/virtual_disk.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace delayq::support {
namespace {

constexpr std::array<std::string_view, kDiskFaultCount> kFaultNames{
    "write", "sync", "read", "allocate", "create", "remove", "sync_directory"};

Error off(std::string_view op) { return {ErrorCode::kUnavailable, std::string(op), "the machine is off"}; }
Error failed(std::string_view op) { return {ErrorCode::kUnavailable, std::string(op), "input/output error"}; }

}  // namespace

std::string_view name_of(DiskFault fault) { return kFaultNames[static_cast<size_t>(fault)]; }

class VirtualDisk::Guard final : public journal::Disk::Lock {
 public:
  explicit Guard(std::shared_ptr<int> token) : token_(std::move(token)) {}

 private:
  std::shared_ptr<int> token_;
};

class VirtualDisk::OpenFile final : public journal::File {
 public:
  OpenFile(VirtualDisk& disk, std::string name, InodePtr inode)
      : disk_(disk), name_(std::move(name)), inode_(std::move(inode)), life_(disk.life_) {
    ++inode_->handles;
  }
  ~OpenFile() override { --inode_->handles; }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  Status write(uint64_t offset, std::span<const std::byte> bytes) override {
    if (dead()) return off("disk.write");
    const Gate gate = disk_.pass_change("write", fmt::format("{} {}+{}", name_, offset, bytes.size()));
    if (!gate.open) {
      write_part(offset, bytes);
      return off("disk.write");
    }
    if (disk_.fires(DiskFault::kWrite)) {
      if (disk_.random_.chance(1, 2)) write_part(offset, bytes);
      return failed("disk.write");
    }
    if (Status room = disk_.room_for(*inode_, offset + bytes.size(), "disk.write"); !room.ok()) {
      const uint64_t fits = inode_->bytes.cached().size();  // bytes below this need no new space
      if (offset < fits) write_part(offset, bytes.first(fits - offset));
      return room;
    }
    inode_->bytes.write(offset, bytes);
    return {};
  }

  Status sync() override {
    if (dead()) return off("disk.sync");
    const Gate gate = disk_.pass_change("sync", name_);
    if (!gate.open) {
      if (gate.happens && !disk_.syncs_lie_) inode_->bytes.sync();
      return off("disk.sync");
    }
    if (disk_.fires(DiskFault::kSync)) {
      inode_->bytes.fail_sync(disk_.random_, disk_.random_.chance(1, 2));
      return failed("disk.sync");
    }
    if (!disk_.syncs_lie_) inode_->bytes.sync();
    return {};
  }

  Result<size_t> read(uint64_t offset, std::span<std::byte> into) override {
    if (dead()) return off("disk.read");
    if (disk_.fires(DiskFault::kRead)) return failed("disk.read");
    return copy_out(offset, into);
  }

  bool read_cached(uint64_t offset, std::span<std::byte> into) override {
    if (dead() || disk_.random_.below(256) < disk_.cache_misses_) return false;
    if (offset + into.size() > inode_->bytes.cached().size()) return false;
    return copy_out(offset, into) == into.size();
  }

  Result<uint64_t> size() override {
    if (dead()) return off("disk.size");
    return inode_->bytes.cached().size();
  }

  Status allocate(uint64_t size) override {
    if (dead()) return off("disk.allocate");
    const Gate gate = disk_.pass_change("allocate", fmt::format("{} {}", name_, size));
    const uint64_t grown = std::max<uint64_t>(size, inode_->bytes.cached().size());
    if (!gate.open) {
      if (gate.happens) inode_->bytes.resize(grown);
      return off("disk.allocate");
    }
    if (disk_.fires(DiskFault::kAllocate)) return failed("disk.allocate");
    if (Status room = disk_.room_for(*inode_, grown, "disk.allocate"); !room.ok()) return room;
    inode_->bytes.resize(grown);
    return {};
  }

  Status truncate(uint64_t size) override {
    if (dead()) return off("disk.truncate");
    const Gate gate = disk_.pass_change("truncate", fmt::format("{} {}", name_, size));
    if (gate.happens) inode_->bytes.resize(size);
    if (!gate.open) return off("disk.truncate");
    return {};
  }

 private:
  /// A write that is cut short ends between two sectors: a sector is never torn.
  void write_part(uint64_t offset, std::span<const std::byte> bytes) {
    const uint64_t before = offset / kSectorBytes;
    const uint64_t sectors = (offset + bytes.size()) / kSectorBytes - before + 1;
    const uint64_t cut = (before + disk_.random_.below(sectors + 1)) * kSectorBytes;
    if (cut > offset)
      inode_->bytes.write(offset, bytes.first(std::min<uint64_t>(cut - offset, bytes.size())));
  }

  bool dead() const { return disk_.stopped_ || life_ != disk_.life_; }

  size_t copy_out(uint64_t offset, std::span<std::byte> into) const {
    const std::span<const std::byte> cached = inode_->bytes.cached();
    if (offset >= cached.size()) return 0;
    const size_t size = std::min<size_t>(into.size(), cached.size() - offset);
    if (size > 0) std::memcpy(into.data(), cached.data() + offset, size);
    return size;
  }

  VirtualDisk& disk_;
  const std::string name_;  // name when it was opened; for traces
  const InodePtr inode_;
  const uint64_t life_;
};

VirtualDisk::VirtualDisk(uint64_t seed) : random_(seed) {}
VirtualDisk::~VirtualDisk() = default;

// ---- operations of programs

Result<std::vector<std::string>> VirtualDisk::list() {
  if (stopped_) return off("disk.list");
  std::vector<std::string> names;
  for (const auto& [name, inode] : names_) names.push_back(name);
  // The order of names in a real directory is not defined.
  for (size_t i = names.size(); i > 1; --i) std::swap(names[i - 1], names[random_.below(i)]);
  return names;
}

Result<std::shared_ptr<journal::File>> VirtualDisk::create(std::string_view name) {
  if (stopped_) return off("disk.create");
  if (names_.contains(name))
    return Error{ErrorCode::kConflict, "disk.create", fmt::format("{} exists", name)};
  const Gate gate = pass_change("create", name);
  if (gate.open && fires(DiskFault::kCreate)) return failed("disk.create");
  if (gate.happens) {
    auto inode = std::make_shared<Inode>();
    inodes_.push_back(inode);
    change_name({{}, std::string(name), std::move(inode)});
  }
  if (!gate.open) return off("disk.create");
  return std::shared_ptr<journal::File>(
      std::make_shared<OpenFile>(*this, std::string(name), names_.find(name)->second));
}

Result<std::shared_ptr<journal::File>> VirtualDisk::open(std::string_view name) {
  if (stopped_) return off("disk.open");
  const auto found = names_.find(name);
  if (found == names_.end()) return Error{ErrorCode::kNotFound, "disk.open", fmt::format("no file {}", name)};
  return std::shared_ptr<journal::File>(std::make_shared<OpenFile>(*this, found->first, found->second));
}

Status VirtualDisk::remove(std::string_view name) {
  if (stopped_) return off("disk.remove");
  const auto found = names_.find(name);
  if (found == names_.end())
    return Error{ErrorCode::kNotFound, "disk.remove", fmt::format("no file {}", name)};
  const Gate gate = pass_change("remove", name);
  if (gate.open && fires(DiskFault::kRemove)) return failed("disk.remove");
  if (gate.happens) change_name({found->first, {}, found->second});
  if (!gate.open) return off("disk.remove");
  return {};
}

Status VirtualDisk::rename(std::string_view from, std::string_view to) {
  if (stopped_) return off("disk.rename");
  const auto found = names_.find(from);
  if (found == names_.end())
    return Error{ErrorCode::kNotFound, "disk.rename", fmt::format("no file {}", from)};
  const Gate gate = pass_change("rename", fmt::format("{} to {}", from, to));
  if (gate.happens && from != to) change_name({found->first, std::string(to), found->second});
  if (!gate.open) return off("disk.rename");
  return {};
}

Status VirtualDisk::sync_directory() {
  if (stopped_) return off("disk.sync_directory");
  const Gate gate = pass_change("sync directory", {});
  if (gate.open && fires(DiskFault::kSyncDirectory)) return failed("disk.sync_directory");
  if (gate.happens && !syncs_lie_) {
    durable_names_ = names_;
    name_changes_.clear();
  }
  if (!gate.open) return off("disk.sync_directory");
  return {};
}

Result<uint64_t> VirtualDisk::free_bytes() {
  if (stopped_) return off("disk.free_bytes");
  const uint64_t used = used_bytes();
  return used < capacity_ ? capacity_ - used : 0;
}

Result<std::unique_ptr<journal::Disk::Lock>> VirtualDisk::lock() {
  if (stopped_) return off("disk.lock");
  if (!lock_.expired()) {
    return Error{ErrorCode::kUnavailable, "disk.lock", "virtual is in use by process 1 of this simulation"};
  }
  auto token = std::make_shared<int>(0);
  lock_ = token;
  return std::unique_ptr<Lock>(std::make_unique<Guard>(std::move(token)));
}

// ---- faults

void VirtualDisk::power_cut() {
  trace("POWER CUT", {});
  // Either all changes up to a moment, or any of the changes without the others; a rename is always atomic.
  const bool mixture = random_.chance(1, 3);
  const size_t moment = random_.below(name_changes_.size() + 1);
  for (size_t i = 0; i < name_changes_.size(); ++i) {
    if (mixture ? random_.chance(1, 2) : i < moment) apply(name_changes_[i], durable_names_);
  }
  name_changes_.clear();
  names_ = durable_names_;
  for (const auto& [name, inode] : names_) inode->bytes.power_cut(random_);
  end_life();
}

void VirtualDisk::kill() {
  trace("KILL", {});
  end_life();
}

void VirtualDisk::end_life() {
  ++life_;
  lock_.reset();
  stopped_ = false;
  changes_left_.reset();
}

void VirtualDisk::fail(DiskFault fault, uint64_t skip) { planted_[static_cast<size_t>(fault)] = skip; }

void VirtualDisk::forget_faults() {
  planted_.fill(std::nullopt);
  changes_left_.reset();
}

std::optional<VirtualDisk::Damage> VirtualDisk::flip_bit() {
  std::vector<std::pair<std::string, Inode*>> candidates;
  uint64_t total = 0;
  for (const auto& [name, inode] : names_) {
    candidates.emplace_back(name, inode.get());
    total += inode->bytes.durable().size();
  }
  if (total == 0) return std::nullopt;
  uint64_t offset = random_.below(total);
  for (const auto& [name, inode] : candidates) {
    const uint64_t size = inode->bytes.durable().size();
    if (offset < size) {
      const Damage damage{name, offset, static_cast<unsigned>(random_.below(8))};
      inode->bytes.flip_bit(damage.offset, damage.bit);
      trace("FLIP BIT", fmt::format("{} at {} bit {}", name, damage.offset, damage.bit));
      return damage;
    }
    offset -= size;
  }
  return std::nullopt;
}

void VirtualDisk::undo(const Damage& damage) {
  const auto found = names_.find(damage.file);
  if (found == names_.end() || damage.offset >= found->second->bytes.durable().size()) return;
  found->second->bytes.flip_bit(damage.offset, damage.bit);
  trace("FLIP BACK", damage.file);
}

std::optional<VirtualDisk::Mishap> VirtualDisk::misplace(
    const std::function<bool(const std::string& name)>& concerns) {
  std::vector<std::string> files;
  for (const auto& [name, inode] : names_) {
    if (concerns(name)) files.push_back(name);
  }
  if (files.empty()) return std::nullopt;
  before_mishap_ = names_;
  const std::string one = files[random_.below(files.size())];
  const std::string other = files[random_.below(files.size())];
  Mishap mishap{"VANISH", {one}};
  if (one == other || random_.chance(1, 2)) {
    names_.erase(one);
  } else if (random_.chance(1, 2)) {
    mishap = {"EXCHANGE", {one, other}};
    std::swap(names_[one], names_[other]);
  } else {
    mishap = {"COPY OVER", {one, other}};
    names_[one] = names_[other];
  }
  durable_names_ = names_;
  name_changes_.clear();
  trace(mishap.what, one, other);
  return mishap;
}

void VirtualDisk::put_back() {
  names_ = durable_names_ = before_mishap_;
  name_changes_.clear();
  trace("PUT BACK", {});
}

std::unique_ptr<VirtualDisk> VirtualDisk::clone(uint64_t seed) const {
  auto copy = std::make_unique<VirtualDisk>(seed);
  for (const auto& [name, inode] : names_) {
    auto copied = std::make_shared<Inode>();
    copied->bytes.write(0, inode->bytes.cached());
    copied->bytes.sync();
    copy->inodes_.push_back(copied);
    copy->names_.emplace(name, std::move(copied));
  }
  copy->durable_names_ = copy->names_;
  return copy;
}

uint64_t VirtualDisk::used_bytes() const {
  uint64_t used = 0;
  for (const auto& [name, inode] : names_) used += inode->bytes.cached().size();
  for (const std::weak_ptr<Inode>& weak : inodes_) {
    const InodePtr inode = weak.lock();
    if (inode == nullptr || inode->handles == 0) continue;
    const bool named =
        std::any_of(names_.begin(), names_.end(), [&](const auto& row) { return row.second == inode; });
    if (!named) used += inode->bytes.cached().size();
  }
  return used;
}

// ---- internals

VirtualDisk::Gate VirtualDisk::pass_change(std::string_view what, std::string_view file) {
  if (changes_left_ && *changes_left_ == 0) {
    stopped_ = true;
    const bool happens = random_.chance(1, 2);
    trace(what, file, "STOP");
    return {false, happens};
  }
  if (changes_left_) --*changes_left_;
  trace(what, file);
  return {true, true};
}

bool VirtualDisk::fires(DiskFault fault) {
  std::optional<uint64_t>& planted = planted_[static_cast<size_t>(fault)];
  if (!planted) return false;
  if (*planted > 0) {
    --*planted;
    return false;
  }
  planted.reset();
  ++faults_fired_;
  trace("FAULT", name_of(fault));
  return true;
}

Status VirtualDisk::room_for(const Inode& inode, uint64_t new_size, std::string_view op) {
  const uint64_t old_size = inode.bytes.cached().size();
  if (capacity_ == UINT64_MAX || new_size <= old_size) return {};
  if (used_bytes() + (new_size - old_size) <= capacity_) return {};
  ++faults_fired_;
  trace("DISK FULL", op);
  return Error{ErrorCode::kDiskFull, std::string(op), "no space left on the disk"};
}

void VirtualDisk::change_name(NameChange change) {
  apply(change, names_);
  name_changes_.push_back(std::move(change));
  std::erase_if(inodes_, [](const std::weak_ptr<Inode>& inode) { return inode.expired(); });
}

void VirtualDisk::apply(const NameChange& change, Names& to) {
  if (!change.from.empty()) to.erase(change.from);
  if (!change.to.empty()) to[change.to] = change.inode;
}

void VirtualDisk::trace(std::string_view what, std::string_view file, std::string_view note) const {
  if (trace_) trace_(fmt::format("disk: {} {} {}", what, file, note));
}

}  // namespace delayq::support
