#include "engine/redis/joint_call.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace delayq::redis {

namespace {

/// Every script first returns when its shard must be visited next and which outlets got ready jobs.
constexpr size_t kSaidFirst = 2;
constexpr size_t kExceptionItems = 4;

}  // namespace

JointCall::JointCall(const Terms& terms, Arguments arguments)
    : script_(&terms.script),
      share_(terms.share),
      shard_(terms.shard),
      topic_(terms.topic),
      now_(terms.now),
      numbers_(terms.numbers.begin(), terms.numbers.end()),
      is_count_enough_(terms.is_count_enough),
      arguments_(std::move(arguments)) {
  for (const int64_t number : numbers_) arguments_.number(number);
  first_of_items_ = arguments_.words().size();
}

bool JointCall::takes(const Terms& terms, uint32_t items) const {
  return script_ == &terms.script && now_ == terms.now && is_about(terms.shard, terms.topic) &&
         items_ + items <= (is_count_enough_ ? kMostCounted : kItemsPerCall) &&
         arguments_.bytes() < kBytesPerCall &&
         std::equal(numbers_.begin(), numbers_.end(), terms.numbers.begin(), terms.numbers.end());
}

Arguments& JointCall::add(uint32_t items, net::redis::Answer answer) {
  items_ += items;
  parts_.push_back({items, std::move(answer)});
  return arguments_;
}

Arguments& JointCall::finish() {
  if (is_count_enough_) arguments_.number(items_);
  return arguments_;
}

bool JointCall::keep_part(resp::Value& value) {
  if (!may_be_parted() || value.items.size() <= kSaidFirst) return false;
  const size_t said = value.items.size() - kSaidFirst;
  const size_t done = said / said_of_each();
  if (done >= items_ || said % said_of_each() != 0) return false;
  for (size_t i = kSaidFirst; i < value.items.size(); ++i) kept_.push_back(std::move(value.items[i]));
  const size_t words = arguments_.words().size() - first_of_items_;
  arguments_.remove(first_of_items_, done * (words / items_));
  items_ -= static_cast<uint32_t>(done);
  return true;
}

void JointCall::answer(Result<resp::Value> value) {
  if (value.ok() && value->items.size() >= kSaidFirst) {
    value->items.insert(value->items.begin() + kSaidFirst, std::make_move_iterator(kept_.begin()),
                        std::make_move_iterator(kept_.end()));
  }
  if (parts_.size() == 1) return parts_.front().answer(std::move(value));
  std::vector<resp::Value> shares;
  if (value.ok()) shares = shares_of(*value);
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (value.ok()) {
      parts_[i].answer(std::move(shares[i]));
    } else {
      parts_[i].answer(value.error());
    }
  }
}

std::vector<resp::Value> JointCall::shares_of(resp::Value& whole) const {
  std::vector<resp::Value> shares(parts_.size());
  // If the reply is malformed, every verb gets an empty part, which it reports as an error.
  if (whole.type != resp::Value::Type::kArray || whole.items.size() < kSaidFirst) return shares;
  for (resp::Value& share : shares) {
    share.type = resp::Value::Type::kArray;
    share.items.resize(kSaidFirst);
  }
  for (size_t i = 0; i < kSaidFirst; ++i) shares.front().items[i] = std::move(whole.items[i]);
  switch (share_) {
    case Share::kOneEach:
    case Share::kTwoEach:
      share_in_turn(whole, said_of_each(), shares);
      break;
    case Share::kExceptions:
      share_exceptions(whole, shares);
      break;
  }
  return shares;
}

void JointCall::share_in_turn(resp::Value& whole, size_t for_each, std::vector<resp::Value>& shares) const {
  const size_t odd = (whole.items.size() - kSaidFirst) % for_each;
  const size_t last = whole.items.size() - odd;
  size_t next = kSaidFirst;
  for (size_t part = 0; part < parts_.size(); ++part) {
    const size_t all = next + for_each * parts_[part].items;
    std::vector<resp::Value>& items = shares[part].items;
    for (const size_t end = std::min(all, last); next < end; ++next)
      items.push_back(std::move(whole.items[next]));
    if (next < all)
      items.insert(items.end(), whole.items.end() - static_cast<ptrdiff_t>(odd), whole.items.end());
  }
}

void JointCall::share_exceptions(resp::Value& whole, std::vector<resp::Value>& shares) const {
  size_t part = 0;
  int64_t first = 0;  // first item of that part
  for (size_t i = kSaidFirst; i + kExceptionItems <= whole.items.size(); i += kExceptionItems) {
    // Exceptions come in the order of the items.
    while (part + 1 < parts_.size() && whole.items[i].integer >= first + parts_[part].items)
      first += parts_[part++].items;
    whole.items[i].integer -= first;
    for (size_t k = 0; k < kExceptionItems; ++k) shares[part].items.push_back(std::move(whole.items[i + k]));
  }
}

}  // namespace delayq::redis
