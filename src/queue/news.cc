#include "queue/news.h"

#include <algorithm>
#include <charconv>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/text.h"
#include "queue/msgpack.h"

namespace delayq {

namespace {

/// A message to other servers begins with one of these.
constexpr char kListens = 'l';
constexpr char kItemsFollow = 'i';
constexpr Moment kLongAgo = Moment::min();
constexpr size_t kKeptText = 128;

/// A prefix of at most kNewsReasonBytes that does not end within a character.
std::string_view shortened(std::string_view text) {
  if (text.size() <= kNewsReasonBytes) return text;
  size_t size = kNewsReasonBytes;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) --size;
  return text.substr(0, size);
}

Result<uint32_t> parse_bits(std::string_view field, std::string_view text,
                            std::span<const std::string_view> names) {
  if (text == "all") return 0U;
  uint32_t bits = 0;
  for (std::string_view rest = text; bits == 0 || !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    const auto found = std::find(names.begin(), names.end(), word);
    if (found == names.end()) {
      return invalid(
          field, fmt::format("{}: {} is not known: use all, or some of {} with commas between them", field,
                             quote(word), fmt::join(names, ", ")));
    }
    bits |= 1U << (found - names.begin());
  }
  return bits;
}

bool has_bit(uint32_t bits, size_t bit) { return (bits >> bit & 1) != 0; }

/// What a cursor says: EPOCH.NUMBER.LEFT_OUT, the first one in base 16.
struct Place {
  uint64_t epoch = 0;  ///< of the server's start
  uint64_t number = 0;
  uint64_t left_out = 0;
};

Result<Place> parse_cursor(std::string_view text) {
  Place place;
  if (text.empty()) return place;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto take = [&](uint64_t& into, int base) {
    const auto [stop, problem] = std::from_chars(at, end, into, base);
    at = stop;
    return problem == std::errc{};
  };
  const auto dot = [&] { return at != end && *at++ == '.'; };
  const bool has_number = take(place.epoch, 16) && dot() && take(place.number, 10);
  // An older server's ends here. It is from another start, so that the client is told of a gap.
  const bool is_whole = has_number && (at == end || (dot() && take(place.left_out, 10) && at == end));
  if (!is_whole) return in_verb("news", invalid("after", "after: not a cursor that news had"));
  return place;
}

}  // namespace

Result<uint32_t> parse_news_kinds(std::string_view text) { return parse_bits("news", text, kNewsNames); }
Result<uint32_t> parse_news_states(std::string_view text) {
  std::array<std::string_view, kJobStateCount> names;
  for (size_t i = 0; i < kJobStateCount; ++i) names[i] = name_of(static_cast<JobState>(i));
  return parse_bits("state", text, names);
}

bool NewsFilter::passes(const NewsItem& item) const {
  if (kinds != 0 && !has_bit(kinds, static_cast<size_t>(item.kind))) return false;
  if (states != 0 && (!item.state || !has_bit(states, static_cast<size_t>(*item.state)))) return false;
  if (!topic.empty() && topic != item.topic) return false;
  if (!group.empty() && group != item.group) return false;
  return patterns.empty() || covers(patterns, item.topic);
}

bool NewsFilter::is_unrestricted() const {
  return kinds == 0 && states == 0 && topic.empty() && group.empty() && patterns.empty();
}

void News::Entry::set(const NewsItem& item) {
  at = item.at;
  due = item.due;
  count = item.count;
  const std::string_view reason = shortened(item.reason);
  text.reserve(item.topic.size() + item.id.size() + item.group.size() + reason.size());
  text.append(item.topic).append(item.id).append(item.group).append(reason);
  topic = static_cast<uint32_t>(item.topic.size());
  id = static_cast<uint32_t>(item.id.size());
  group = static_cast<uint32_t>(item.group.size());
  attempt = item.attempt;
  state = item.state;
  kind = item.kind;
}

NewsItem News::Entry::view() const {
  const std::string_view all = text;
  return {.kind = kind,
          .at = at,
          .topic = all.substr(0, topic),
          .id = all.substr(topic, id),
          .group = all.substr(topic + id, group),
          .state = state,
          .attempt = attempt,
          .due = due,
          .reason = all.substr(topic + id + group),
          .count = count};
}

// ---- what happens

void News::note(const NewsItem& item) {
  if (others_until_ > now_ && item.kind != NewsKind::kDue) {
    if (outgoing_.size() >= kMostOutgoing) {
      ++outgoing_left_out_;
    } else {
      ++outgoing_count_;
      MsgpackWriter out{outgoing_};
      out.array(9);
      out.uint(static_cast<uint64_t>(item.kind));
      out.uint(static_cast<uint64_t>(to_unix_ms(item.at)));
      out.text(item.topic);
      out.text(item.id);
      out.text(item.group);
      out.uint(item.state ? 1 + static_cast<uint64_t>(*item.state) : 0);
      out.uint(item.attempt);
      out.uint(item.due ? 1 + static_cast<uint64_t>(to_unix_ms(std::max(*item.due, Moment{}))) : 0);
      out.text(item.id.empty() ? std::to_string(item.count) : std::string(shortened(item.reason)));
    }
  }
  keep(item.at, item);
}

News::Interest::Interest(NewsFilter wanted, uint64_t from)
    : filter(std::move(wanted)), since(from), takes_all(filter.is_unrestricted()) {
  room.fill(kBurst);
}

void News::Interest::refill(Moment now) {
  if (refilled_at <= now && now - refilled_at < kRefillEvery) return;
  const int64_t passed = refilled_at > now ? 0 : (now - refilled_at).count();  // the clock may be set back
  const auto more = static_cast<uint32_t>(std::min<int64_t>(passed, kBurst) * kKeptPerMs);
  for (uint32_t& each : room) each = std::min(kBurst, each + more);
  refilled_at = now;
}

void News::keep(Moment now, const NewsItem& item) {
  const auto kind = static_cast<size_t>(item.kind);
  bool is_kept = false;
  bool has_passed = false;
  for (Interest& each : interests_) {
    if (!each.takes_all && !each.filter.passes(item)) continue;
    each.refill(now);
    has_passed = true;
    if (each.room[kind] == 0) continue;
    --each.room[kind];
    is_kept = true;
  }
  if (is_kept) {
    Entry& entry = add();
    entry.set(item);
    bytes_ += entry.bytes();
  } else if (has_passed) {
    for (Interest& each : interests_) {
      if (each.takes_all || each.filter.passes(item)) each.left_out += item.count;
    }
  }
}

News::Entry& News::add() {
  while (next_ - first_ == kItems || (bytes_ > kBytes && first_ < next_)) {
    const bool is_next = next_ - first_ == kItems;  // it is written at once, so small memory is kept for that
    Entry& oldest = entry(first_++);
    bytes_ -= oldest.bytes();
    std::string kept;
    if (is_next && oldest.text.capacity() <= kKeptText) kept.swap(oldest.text);
    kept.clear();
    std::destroy_at(&oldest);  // with its texts: an assignment would keep their memory
    std::construct_at(&oldest);
    oldest.text.swap(kept);
  }
  return entry(next_++);
}

size_t News::footprint() const {
  size_t bytes = ring_.capacity() * sizeof(Entry) + outgoing_.capacity();
  for (const Entry& each : ring_) bytes += each.bytes();
  return bytes;
}

void News::note_left_out(uint64_t count) {
  if (others_until_ > now_) outgoing_left_out_ += count;
  keep_gap(count);
}

void News::keep_gap(uint64_t count) {
  if (interests_.empty()) return;
  Entry& entry = add();
  entry.count = count;
  entry.is_gap = true;
  bytes_ += entry.bytes();
}

void News::on_due(Moment now, const std::vector<DueJob>& jobs, uint64_t left_out) {
  now_ = now;
  if (!is_on_) return;
  for (const DueJob& job : jobs) note({NewsKind::kDue, now, job.topic, job.id, job.group, JobState::kReady});
  if (left_out > 0) note_left_out(left_out);
}

// ---- listeners

News::Interest* News::find(const NewsFilter& filter) {
  const auto found = std::find_if(interests_.begin(), interests_.end(),
                                  [&](const Interest& each) { return each.filter == filter; });
  return found == interests_.end() ? nullptr : &*found;
}

News::Interest& News::join(NewsFilter filter) {
  if (Interest* const found = find(filter)) return *found;
  if (interests_.size() >= kMostFilters) make_room();
  return interests_.emplace_back(std::move(filter), next_);
}

bool News::make_room() {
  const auto first =
      std::min_element(interests_.begin(), interests_.end(), [](const Interest& a, const Interest& b) {
        return std::pair(a.listeners > 0, a.forget_at) < std::pair(b.listeners > 0, b.forget_at);
      });
  if (first == interests_.end() || first->listeners > 0) return false;
  interests_.erase(first);
  return true;
}

void News::leave(const NewsFilter& filter) {
  Interest& interest = *find(filter);
  if (--interest.listeners == 0) interest.forget_at = saturating_add(now_, kLinger);
}

void News::update(Moment now) {
  now_ = now;
  std::erase_if(interests_, [now](const Interest& each) {
    // The second condition: the clock was set back.
    return each.listeners == 0 && (each.forget_at <= now || each.forget_at > now + kLinger);
  });
  if (others_until_ > now + kBelieve) others_until_ = now + kBelieve;
  const bool was_on = is_on_;
  is_on_ = !interests_.empty() || others_until_ > now;
  if (interests_.empty() && !ring_.empty()) {
    std::vector<Entry>().swap(ring_);
    first_ = next_;
    bytes_ = 0;
  }
  if (!interests_.empty() && ring_.empty()) ring_.resize(kItems);
  if (is_on_ != was_on) engine_.watch_due(is_on_);
  if (!is_on_) {
    outgoing_.clear();
    outgoing_count_ = outgoing_left_out_ = 0;
  }
}

Result<std::shared_ptr<NewsListener>> News::listen(Moment now, NewsFilter filter, std::string_view cursor,
                                                   std::weak_ptr<const char> alive) {
  const Result<Place> place = parse_cursor(cursor);
  if (!place.ok()) return place.error();
  update(now);
  const bool is_known = find(filter) != nullptr;
  if (!is_known && interests_.size() >= kMostFilters && !make_room()) {
    return Error{ErrorCode::kOverloaded, "news",
                 fmt::format("{} different filters are in use: that is the bound", kMostFilters), kLinger};
  }
  Interest& interest = join(filter);
  ++interest.listeners;
  auto listener = std::shared_ptr<NewsListener>(new NewsListener(*this, std::move(filter), std::move(alive)));
  const bool goes_on =
      is_known && place->epoch == epoch_ && place->number >= interest.since && place->number <= next_;
  listener->next_ = goes_on ? place->number : next_;
  listener->left_out_ = goes_on ? std::min(place->left_out, interest.left_out) : interest.left_out;
  listener->has_gap_ = !cursor.empty() && !goes_on;
  update(now);
  told_at_ = kLongAgo;  // others are told at once
  return listener;
}

NewsListener::~NewsListener() {
  if (!alive_.expired()) news_.leave(filter_);
}

void NewsListener::set_patterns(std::vector<std::string> patterns) {
  if (filter_.patterns == patterns) return;
  news_.leave(filter_);
  filter_.patterns = std::move(patterns);
  News::Interest& interest = news_.join(filter_);
  ++interest.listeners;
  left_out_ = interest.left_out;
  news_.update(news_.now_);
}

std::string NewsListener::cursor() const { return fmt::format("{:x}.{}.{}", news_.epoch_, next_, left_out_); }

NewsListener::Read NewsListener::read(absl::FunctionRef<void(const Read&)> tell, Show show) {
  Read read;
  read.has_missed = std::exchange(has_gap_, false);
  const uint64_t end = news_.next();
  uint64_t begin = std::max(next_, news_.first());
  if (end - begin > News::kItems / 2) begin = end - News::kLatest;
  const uint64_t left_out = news_.find(filter_)->left_out;
  const uint64_t missed = begin - next_ + left_out - std::exchange(left_out_, left_out);
  next_ = begin;
  if (missed > 0) {
    read.missed = read.has_missed ? 0 : missed;
    read.has_missed = true;
  }
  if (read.has_missed) tell(read);
  for (size_t shown = 0; next_ < end && shown < News::kPerRead;) {
    News::Entry& entry = news_.entry(next_++);  // before it is shown: cursor() is behind it
    if (entry.is_gap) {
      tell({true, entry.count});
      continue;
    }
    const NewsItem item = entry.view();
    if (!filter_.passes(item)) continue;
    ++shown;
    const size_t before = entry.rendered.capacity();
    show(item, entry.rendered);
    if (entry.rendered.capacity() != before) entry.rendered.shrink_to_fit();
    news_.bytes_ += entry.rendered.capacity() - before;
  }
  return read;
}

// ---- other servers

Moment News::tick(Moment now) {
  const bool has_listeners = !interests_.empty();
  if (!is_on_ && !has_listeners && others_until_ == kLongAgo) return kNever;
  update(now);
  if (!is_on_) others_until_ = kLongAgo;
  Moment next = kNever;
  for (const Interest& each : interests_) {
    if (each.listeners == 0) next = std::min(next, each.forget_at);
  }
  if (!interests_.empty()) {
    if (told_at_ > now || now - kTellEvery >= told_at_) {
      told_at_ = now;
      engine_.tell_others({&kListens, 1});
    }
    next = std::min(next, told_at_ + kTellEvery);
  }
  if (others_until_ > now) {
    const bool is_time =
        sent_at_ > now || now - kSendEvery >= sent_at_ || outgoing_.size() >= kMostOutgoing / 2;
    if (is_time && (outgoing_count_ > 0 || outgoing_left_out_ > 0)) {
      sent_at_ = now;
      send_outgoing();
    }
    next = std::min({next, others_until_, now + kSendEvery});
  }
  return next;
}

void News::send_outgoing() {
  std::string message(1, kItemsFollow);
  MsgpackWriter out{message};
  out.array(static_cast<uint32_t>(1 + std::exchange(outgoing_count_, 0)));
  out.uint(std::exchange(outgoing_left_out_, 0));
  message += std::exchange(outgoing_, {});
  engine_.tell_others(message);
}

void News::on_told(Moment now, std::string_view message) {
  if (message.empty()) return;
  if (message.front() == kListens) {
    others_until_ = saturating_add(now, kBelieve);
    return update(now);
  }
  if (message.front() != kItemsFollow || interests_.empty()) return;
  MsgpackReader in{message.substr(1)};
  const uint32_t count = in.array();
  const uint64_t left_out = count > 0 ? in.uint() : 0;
  for (uint32_t i = 1; i < count && in.ok(); ++i) {
    NewsItem item;
    if (in.array() != 9) return;
    const uint64_t kind = in.uint();
    item.at = from_unix_ms(static_cast<int64_t>(in.uint()));
    item.topic = in.text();
    item.id = in.text();
    item.group = in.text();
    const uint64_t state = in.uint();
    item.attempt = in.uint32();
    const uint64_t due = in.uint();
    const std::string_view rest = in.text();
    if (!in.ok() || kind >= kNewsKinds || state > kJobStateCount) return;
    item.kind = static_cast<NewsKind>(kind);
    if (state > 0) item.state = static_cast<JobState>(state - 1);
    if (due > 0) item.due = from_unix_ms(static_cast<int64_t>(due - 1));
    if (!item.id.empty()) {
      item.reason = rest;
    } else if (std::from_chars(rest.data(), rest.data() + rest.size(), item.count).ec != std::errc{}) {
      return;
    }
    keep(now, item);
  }
  if (in.ok() && left_out > 0) keep_gap(left_out);
}

}  // namespace delayq
