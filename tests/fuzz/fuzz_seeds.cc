// Any contents of a Redis, in the layouts of the systems that jobs are taken over from. What is read as a job
// has all that a job needs, and its line is JSON; everything else is told. The first byte says which system;
// then come keys: a byte for the beginning of the name, one for the type, the rest of the name, the items,
// all texts with their length before them.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "cli/seeds/layout.h"
#include "cli/seeds/seed_job.h"
#include "json/reader.h"
#include "tests/support/fake_seed_redis.h"

namespace {

using delayq::cli::seeds::FakeRedis;
using delayq::cli::seeds::kSystems;
using delayq::cli::seeds::layout_of;
using delayq::cli::seeds::line_of;
using delayq::cli::seeds::RedisReader;
using delayq::cli::seeds::SeedJob;
using delayq::cli::seeds::Sink;
using delayq::cli::seeds::unpack_job;

void require(bool condition) {
  if (!condition) __builtin_trap();
}

constexpr delayq::Moment kNow = delayq::from_unix_ms(1'800'000'000'000);

class Checking final : public Sink {
 public:
  delayq::Moment now() const override { return kNow; }
  delayq::Status job(SeedJob job) override {
    require(!job.topic.empty() && !job.id.empty() && !job.removal.empty());
    require(job.due >= delayq::Moment{} && job.due < delayq::from_unix_ms(253'402'300'800'000));
    require(delayq::json::parse(line_of(job, kNow)).ok());
    return {};
  }
  void unreadable(std::string where, std::string why) override { require(!where.empty() && !why.empty()); }
  void over() override {}
  void gone() override {}
};

/// Takes texts off the front of the input.
class Input {
 public:
  explicit Input(std::string_view bytes) : bytes_(bytes) {}

  bool is_over() const { return bytes_.empty(); }
  uint8_t byte() {
    if (bytes_.empty()) return 0;
    const auto value = static_cast<uint8_t>(bytes_.front());
    bytes_.remove_prefix(1);
    return value;
  }
  std::string text() {
    const size_t wanted = byte();
    const size_t size = std::min(wanted, bytes_.size());
    std::string taken(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
    return taken;
  }

 private:
  std::string_view bytes_;
};

constexpr std::array<std::string_view, 10> kBeginnings{
    "",         "delay_job:",  "dq_bucket_1", "dqc_bucket_1", "dqjobs:",
    "dqbucket", "delayq:jp:t", "delayq:dq:t", "dqc_bucket_",  "dqready:"};
constexpr std::array<std::string_view, 4> kTypes{"string", "zset", "hash", "list"};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes{reinterpret_cast<const char*>(data), size};
  if (const auto packed = unpack_job(bytes); packed.ok())
    require(!packed->topic.empty() && !packed->id.empty());
  Input input(bytes);
  const std::string_view system = kSystems.at(input.byte() % kSystems.size());
  FakeRedis redis;
  while (!input.is_over()) {
    const std::string_view beginning = kBeginnings.at(input.byte() % kBeginnings.size());
    FakeRedis::Entry entry{std::string(kTypes.at(input.byte() % kTypes.size()))};
    std::string key = std::string(beginning) + input.text();
    const size_t items = entry.type == "string" ? 1 : input.byte() % 32;
    for (size_t i = 0; i < items; ++i) entry.items.push_back(input.text());
    const bool is_paired = entry.type == "zset" || entry.type == "hash";
    if (is_paired && entry.items.size() % 2 != 0) entry.items.pop_back();
    redis.keys[std::move(key)] = std::move(entry);
  }
  Checking sink;
  const auto layout = layout_of(system, {});
  const RedisReader reader = redis.reader();
  (void)layout->total(reader);
  (void)layout->read(reader, sink);
  return 0;
}
