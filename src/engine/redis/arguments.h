#pragma once

#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/arena.h"
#include "engine/redis/record.h"
#include "resp/value.h"

namespace delayq::redis {

/// The ARGV of one call.
class Arguments {
 public:
  /// Adds a copy of `word`.
  Arguments& text(std::string_view word) { return view(storage_.copy(word)); }
  /// Adds a text that outlives this object or is in its storage.
  Arguments& view(std::string_view word) {
    words_.push_back(word);
    bytes_ += word.size();
    return *this;
  }
  Arguments& number(std::integral auto value) {
    char digits[24];
    const char* const end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
    return text({digits, static_cast<size_t>(end - digits)});
  }
  Arguments& moment(Moment moment) { return number(to_stored(moment)); }

  /// Removes `count` words, starting at `place`.
  void remove(size_t place, size_t count) {
    const auto first = words_.begin() + static_cast<ptrdiff_t>(place);
    for (size_t i = 0; i < count; ++i) bytes_ -= words_[place + i].size();
    words_.erase(first, first + static_cast<ptrdiff_t>(count));
  }

  /// Memory for texts that must live as long as this object.
  Arena& storage() { return storage_; }
  std::span<const std::string_view> words() const { return words_; }
  size_t bytes() const { return bytes_; }

 private:
  std::vector<std::string_view> words_;
  size_t bytes_ = 0;
  Arena storage_;
};

/// The items of a batch that go into one call: they have the same shard and topic. `items` holds their
/// positions in the batch.
struct Bundle {
  uint32_t shard = 0;
  std::string_view topic;
  std::vector<uint32_t> items;
  size_t bytes = 0;
};

/// Maximum number of items in one call: while a script runs, Redis does nothing else.
inline constexpr size_t kItemsPerCall = 128;
/// Once a call has this many bytes, no more items are added: while Redis reads and copies a larger call,
/// all other clients wait.
inline constexpr size_t kBytesPerCall = 1u << 20;

/// How many pushes with unique_across_topics go into one call: each of them checks every topic. `topics` is
/// the recent number of topics, or 0 if unknown.
constexpr size_t unique_per_call(uint64_t topics) {
  constexpr uint64_t kLooksPerCall = 1'000;
  constexpr uint64_t kUnknown = 125;
  return std::clamp<size_t>(kLooksPerCall / (topics == 0 ? kUnknown : topics), 1, kItemsPerCall);
}

/// Distributes the items of a batch over calls. Each call has its items in the order of the batch, and the
/// calls of one shard and topic are in this order, too. `where` returns the shard and the topic of an item,
/// `bytes` its approximate size. With `in_strict_order`, items share a call only if no item of another topic
/// or shard is between them. No bundle has more than `most` items.
template <class Items, class Where, class Bytes>
std::vector<Bundle> make_bundles(const Items& items, Where where, Bytes bytes, bool in_strict_order,
                                 size_t most = kItemsPerCall) {
  std::vector<Bundle> bundles;
  std::map<std::pair<uint32_t, std::string_view>, size_t> open;
  size_t latest = 0;
  for (uint32_t i = 0; i < items.size(); ++i) {
    const std::pair<uint32_t, std::string_view> place = where(items[i]);
    const auto fits = [&](size_t index) {
      const Bundle& bundle = bundles[index];
      return bundle.shard == place.first && bundle.topic == place.second && bundle.items.size() < most &&
             bundle.bytes < kBytesPerCall;
    };
    if (bundles.empty() || !fits(latest)) {
      const auto found = in_strict_order ? open.end() : open.find(place);
      if (found != open.end() && fits(found->second)) {
        latest = found->second;
      } else {
        latest = bundles.size();
        bundles.push_back({place.first, place.second, {}, 0});
        open[place] = latest;
      }
    }
    bundles[latest].items.push_back(i);
    bundles[latest].bytes += bytes(items[i]);
  }
  return bundles;
}
/// The same for items that are small.
template <class Items, class Where>
std::vector<Bundle> make_bundles(const Items& items, Where where, bool in_strict_order = false) {
  return make_bundles(
      items, where, [](const auto&) { return size_t{0}; }, in_strict_order);
}

/// Reads the numbers that a script returned for the items, from the third place on, as the verb's outcomes.
template <class Outcome>
bool read_each(const resp::Value& value, const std::string& topic, const Bundle& bundle,
               std::vector<Outcome>& all) {
  (void)topic;
  if (value.items.size() != bundle.items.size() + 2) return false;
  for (size_t i = 0; i < bundle.items.size(); ++i)
    all[bundle.items[i]] = static_cast<Outcome>(value.items[i + 2].integer);
  return true;
}

}  // namespace delayq::redis
