#include "queue/topics.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/text.h"
#include "queue/context.h"

namespace delayq {

void TokenBucket::fill(const Rate& rate, Moment now) {
  if (rate_ != rate) {
    const bool was_unlimited = rate_.count == 0;
    const int64_t tokens = was_unlimited ? 0 : level_ / rate_.per.count();
    rate_ = rate;
    level_ = was_unlimited ? capacity() : std::min(tokens * rate_.per.count(), capacity());
    filled_at_ = now;
    return;
  }
  // One period fills the bucket, so a longer time counts as one period. This also prevents an overflow when
  // the clock jumps.
  const Millis passed = std::clamp(now - filled_at_, Millis::zero(), rate_.per);
  level_ = std::min(level_ + passed.count() * rate_.count, capacity());
  filled_at_ = now;
}

uint32_t TokenBucket::take(const Rate& rate, Moment now, uint32_t wanted) {
  fill(rate, now);
  const auto taken = static_cast<uint32_t>(std::min<int64_t>(level_ / rate_.per.count(), wanted));
  level_ -= taken * rate_.per.count();
  return taken;
}

void TokenBucket::give_back(uint32_t tokens) {
  level_ = std::min(level_ + tokens * rate_.per.count(), capacity());
}

Moment TokenBucket::next_token(const Rate& rate, Moment now) {
  fill(rate, now);
  const int64_t missing = rate_.per.count() - level_;
  if (missing <= 0) return now;
  return now + Millis{(missing + rate_.count - 1) / rate_.count};
}

bool TokenBucket::is_full(const Rate& rate, Moment now) {
  fill(rate, now);
  return level_ == capacity();
}

std::optional<size_t> KnownTopics::place_of(std::string_view topic) const {
  const auto found = by_name_.find(topic);
  if (found == by_name_.end()) return std::nullopt;
  return found->second->place;
}

TopicPtr KnownTopics::find(std::string_view topic) const {
  const std::optional<size_t> place = place_of(topic);
  return place ? ring_[*place] : nullptr;
}

TopicPtr KnownTopics::open(std::string_view topic, Moment now) {
  if (TopicPtr found = find(topic)) {
    found->last_used = now;
    return found;
  }
  auto made = std::make_shared<TopicState>(topic, ++last_serial_);
  made->settings = &defaults_;
  made->last_used = now;
  made->place = ring_.size();
  by_name_.emplace(made->name, made.get());
  ring_.push_back(made);
  return made;
}

void KnownTopics::forget(std::string_view topic) {
  const auto found = by_name_.find(topic);
  if (found == by_name_.end()) return;
  const size_t place = found->second->place;
  by_name_.erase(found);
  std::swap(ring_[place], ring_.back());
  ring_[place]->place = place;
  ring_.pop_back();
}

SettingsBook::SettingsBook(const Settings& configured) : configured_(configured) { apply_defaults({}); }

void SettingsBook::configure(Settings defaults) {
  configured_ = std::move(defaults);
  apply_defaults(std::exchange(stored_defaults_, {}));
}

void SettingsBook::set(Context& context, std::string_view name, Settings settings, Reply<void> reply) {
  Status status = name == kDefaultsName ? Status{} : check_topic(name);
  if (status.ok()) status = check_settings(settings);
  // Removing settings is always allowed: the topic is then like a new one.
  const bool says_nothing = settings == Settings{};
  if (status.ok() && settings.on_dead && *settings.on_dead == name)
    status = invalid("on_dead", "on_dead is the topic itself: name another one");
  if (status.ok() && name != kDefaultsName && !says_nothing)
    status = check_can_deliver(context, name, settings);
  if (!status) return context.refuse(reply, in_verb("settings", status.error()));
  const std::string encoded = encode_settings(settings);
  apply(context, name, std::move(settings));
  ++sets_;
  context.engine.store_settings(name, encoded,
                                [&context, reply = std::move(reply)](const Result<bool>& stored) mutable {
                                  context.answer(reply, stored.ok() ? Status{} : Status{stored.error()});
                                });
}

Status SettingsBook::check_delivery(const Context& context, std::string_view topic) const {
  const auto found = topics_.find(topic);
  return check_can_deliver(context, topic, found == topics_.end() ? Settings{} : found->second->own);
}

std::vector<std::pair<std::string, Error>> SettingsBook::undeliverable(const Context& context) const {
  std::vector<std::pair<std::string, Error>> found;
  for (const auto& [name, entry] : topics_) {
    const Status status = check_can_deliver(context, name, entry->own);
    if (!status.ok()) found.emplace_back(name, status.error());
  }
  return found;
}

namespace {

Status check_kafka(const Context& context, std::string_view topic, const EffectiveSettings& settings) {
  if (!context.config.has_kafka) {
    return invalid("delivery",
                   "delivery = kafka_topic needs Kafka: say kafka.brokers in the server's configuration");
  }
  if (!settings.kafka_topic.empty() || check_kafka_topic(topic).ok()) return {};
  return invalid("kafka_topic",
                 fmt::format("kafka_topic is missing: Kafka does not allow {} as the name of a "
                             "topic (letters, digits and . _ -, at most {})",
                             quote(topic), kKafkaTopicBytes));
}

}  // namespace

Status SettingsBook::check_can_deliver(const Context& context, std::string_view topic,
                                       const Settings& settings) const {
  EffectiveSettings effective = defaults_;
  apply_settings(settings, effective);
  const RedisOutlet& redis = context.config.redis;
  if (goes_to_redis(effective.delivery) && !redis.is_there) {
    return invalid("delivery",
                   fmt::format("delivery = {} needs a Redis: say redis_delivery.url in the server's "
                               "configuration",
                               name_of(effective.delivery)));
  }
  const std::string_view key = effective.redis_key.empty() ? topic : std::string_view(effective.redis_key);
  if (goes_to_redis(effective.delivery) && !redis.taken_prefix.empty() &&
      key.starts_with(redis.taken_prefix)) {
    return invalid("redis_key",
                   fmt::format("redis_key: keys that begin with {} are the engine's own: say another one",
                               redis.taken_prefix));
  }
  if (effective.delivery == Delivery::kKafkaTopic) return check_kafka(context, topic, effective);
  if (effective.delivery != Delivery::kWebhook || !effective.callback.empty()) return {};
  return invalid("callback", "callback is missing: delivery = webhook needs to know where to call");
}

Status SettingsBook::load(Context& context, const std::vector<TopicSettings>& stored) {
  Status first_problem;
  for (const TopicSettings& row : stored) {
    Result<Settings> settings = decode_settings(row.settings);
    if (settings.ok()) {
      apply(context, row.topic, std::move(*settings));
    } else if (first_problem.ok()) {
      Error error = settings.error();
      error.detail = "topic " + quote(row.topic) + ": " + error.detail;
      first_problem = std::move(error);
    }
  }
  return first_problem;
}

std::vector<SettingsBook::Changed> SettingsBook::reload(Context& context,
                                                        const std::vector<TopicSettings>& stored) {
  std::vector<Changed> changed;
  absl::btree_map<std::string, Settings, std::less<>> wanted;
  wanted[std::string{kDefaultsName}];
  for (const auto& [name, entry] : topics_) wanted[name];
  for (const TopicSettings& row : stored) {
    const Result<Settings> settings = decode_settings(row.settings);
    wanted[row.topic] = settings.ok() ? *settings : own(row.topic);
  }
  for (auto& [name, settings] : wanted) {
    if (settings == own(name)) continue;
    const EffectiveSettings before = effective(name);
    apply(context, name, std::move(settings));
    changed.push_back({name, keeps_less(effective(name), before)});
  }
  return changed;
}

const Settings& SettingsBook::own(std::string_view name) const {
  static const Settings kNothing;
  if (name == kDefaultsName) return stored_defaults_;
  const auto found = topics_.find(name);
  return found == topics_.end() ? kNothing : found->second->own;
}

const EffectiveSettings& SettingsBook::effective(std::string_view topic) const {
  const auto found = topics_.find(topic);
  return found == topics_.end() ? defaults_ : found->second->effective;
}

std::vector<std::string> SettingsBook::names_after(std::string_view after, size_t limit) const {
  std::vector<std::string> names;
  for (auto next = topics_.upper_bound(after); next != topics_.end() && names.size() < limit; ++next) {
    names.push_back(next->first);
  }
  return names;
}

void SettingsBook::apply(Context& context, std::string_view name, Settings settings) {
  if (name == kDefaultsName) return apply_defaults(std::move(settings));
  const TopicPtr topic = context.topics.open(name, context.now);
  if (settings == Settings{}) {
    topic->settings = &defaults_;
    topics_.erase(name);
    return;
  }
  std::unique_ptr<Entry>& entry = topics_[std::string{name}];
  if (entry == nullptr) entry = std::make_unique<Entry>();
  entry->own = std::move(settings);
  entry->topic = topic;
  refresh(*entry);
  topic->settings = &entry->effective;
}

void SettingsBook::apply_defaults(Settings settings) {
  stored_defaults_ = std::move(settings);
  defaults_ = EffectiveSettings{};
  apply_settings(configured_, defaults_);
  apply_settings(stored_defaults_, defaults_);
  for (auto& [name, entry] : topics_) refresh(*entry);
}

void SettingsBook::refresh(Entry& entry) const {
  entry.effective = defaults_;
  apply_settings(entry.own, entry.effective);
}

}  // namespace delayq
