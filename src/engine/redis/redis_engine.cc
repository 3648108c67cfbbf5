#include "engine/redis/redis_engine.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include <fmt/format.h>

#include "core/siphash.h"
#include "engine/redis/keys.h"
#include "engine/redis/scripts.h"

namespace delayq {

using net::redis::Answer;
using net::redis::Script;
using redis::Arguments;

namespace {

constexpr int64_t kOwnOutlet = 1;
constexpr int64_t kCallbackOutlet = 2;
/// The end of the name under which a server that watches_due_ calls scripts (prelude_life.lua).
constexpr std::string_view kWatchMark = " w";
/// The list is searched for each verb.
constexpr size_t kMostJointCalls = 32;
/// The key of the hash that makes the seed of a server's nonces from its name.
constexpr SipKey kNonces{0x64656c6179712072, 0x656469736e6f6e63};

/// "delayq:{3}:next" -> "3". A few digits: no allocation is needed to keep them.
std::string_view tag_of(std::string_view key) {
  const size_t open = key.find('{');
  if (open == std::string_view::npos) return {};
  return key.substr(open + 1, key.find('}', open) - open - 1);
}

}  // namespace

RedisEngine::RedisEngine(net::redis::Client& client, RedisEngineOptions options)
    : client_(client),
      options_(std::move(options)),
      keys_(options_.prefix, options_.shards),
      channel_(keys_.shared(redis::kNewsChannel)),
      driving_(keys_.shards(), options_.hold),
      hints_(keys_.shards()),
      random_(siphash128(kNonces, options_.server).low),
      nonce_(random_.between(1, redis::kMostNonce)) {
  sender_ = options_.server;
  if (options_.cold_store != nullptr && !options_.only_looks) open_cold_store();
  for (uint32_t shard = 0; shard < keys_.shards(); ++shard) {
    senders_.push_back(fmt::format("{}@{}", shard, sender_));
    watching_senders_.push_back(fmt::format("{}{}", senders_.back(), kWatchMark));
  }
  if (options_.only_looks) return;
  client_.subscribe(
      channel_,
      [this, alive = std::weak_ptr(alive_)](std::string_view message) {
        if (!alive.expired()) hear(message);
      },
      [this, alive = std::weak_ptr(alive_)] {
        if (!alive.expired()) look_at_everything();
      });
  check_layout();
}

void RedisEngine::open_cold_store() {
  redis::ColdTier::Redis redis;
  redis.deployment = options_.prefix;
  redis.shards = keys_.shards();
  redis.shard_of = [this](std::string_view id) { return keys_.shard_of(id); };
  redis.arguments = [this](Moment now, uint32_t shard) { return arguments_for(now, shard, {}); };
  redis.run = [this](const Script& script, uint32_t shard, const Arguments& arguments, Answer answer) {
    run(script, shard_keys(shard).all(), arguments,
        [this, shard, answer = std::move(answer)](Result<resp::Value> value) mutable {
          if (value.ok()) note_topics(shard, *value);
          answer(std::move(value));
        });
  };
  cold_ = std::make_unique<redis::ColdTier>(*options_.cold_store, std::move(redis), random_.next());
  // Scripts read it there (prelude_delay.lua).
  sender_ += fmt::format(" {}", cold_->least().count());
}

void RedisEngine::check_layout() {
  redis::settle_layout(client_, keys_.shared("meta"), keys_.layout(),
                       [this, alive = std::weak_ptr(alive_)](const Result<resp::Value>& answer) {
                         if (!alive.expired()) layout_came(answer);
                       });
}

void RedisEngine::layout_came(const Result<resp::Value>& answer) {
  // No reply means no connection; the layout is requested again with the next one.
  const auto layout = answer.ok() ? redis::read_layout(*answer) : std::nullopt;
  if (!layout) return;
  const auto shards = redis::shards_of(*layout, options_.prefix, keys_.shards());
  refused_.reset();
  if (!shards.ok()) {
    refused_ = shards.error();
  } else if (*shards != keys_.layout()) {
    refused_ = Error{ErrorCode::kUnavailable, "redis",
                     "the shards have another layout than at the start of this server: start it again"};
  }
}

Arguments RedisEngine::arguments_for(Moment now, uint32_t shard, std::string_view topic) const {
  Arguments arguments;
  const std::vector<std::string>& senders = watches_due_ ? watching_senders_ : senders_;
  arguments.moment(now).text(topic).view(channel_).view(senders[shard]);
  return arguments;
}

void RedisEngine::run(const Script& script, std::span<const std::string_view> keys,
                      const Arguments& arguments, Answer answer) {
  send_all_joint();
  submit(script, keys, arguments, std::move(answer));
}

void RedisEngine::submit(const Script& script, std::span<const std::string_view> keys,
                         const Arguments& arguments, Answer answer) {
  if (refused_) {
    answers_.push_back(
        [refused = *refused_, answer = std::move(answer)]() mutable { answer(std::move(refused)); });
    return;
  }
  client_.run(script, keys, arguments.words(),
              [this, alive = std::weak_ptr(alive_), name = script.name, tag = std::string(tag_of(keys[0])),
               answer = std::move(answer)](Result<resp::Value> value) mutable {
                if (!alive.expired())
                  answer(heard(std::move(value), {name, tag, {}, options_.prefix, options_.prefix_name}));
              });
}

Result<resp::Value> RedisEngine::heard(Result<resp::Value> answer, const redis::Refused& call) {
  if (answer.ok()) return answer;
  note_if_lost(answer);
  redis::Explained explained = redis::explain(answer.error(), call);
  if (!explained.problem.empty()) problem_ = std::move(explained.problem);
  return std::move(explained.error);
}

Arguments& RedisEngine::join(const redis::Terms& terms, uint32_t items, Answer answer) {
  const auto same_topic = [&terms](const redis::JointCall& call) {
    return call.is_about(terms.shard, terms.topic);
  };
  auto call = std::find_if(joint_calls_.begin(), joint_calls_.end(), same_topic);
  if (call != joint_calls_.end() && !call->takes(terms, items)) {
    redis::JointCall full = std::move(*call);
    joint_calls_.erase(call);
    send_joint(std::move(full));
    call = joint_calls_.end();
  }
  if (call == joint_calls_.end()) {
    if (joint_calls_.size() == kMostJointCalls) send_all_joint();
    joint_calls_.emplace_back(terms, arguments_for(terms.now, terms.shard, terms.topic));
    call = std::prev(joint_calls_.end());
  }
  return call->add(items, std::move(answer));
}

void RedisEngine::send_joint(redis::JointCall call) {
  call.finish();
  send_part(std::make_shared<redis::JointCall>(std::move(call)));
}

void RedisEngine::send_part(const std::shared_ptr<redis::JointCall>& call) {
  const redis::TopicKeys keys = keys_.topic(call->shard(), call->topic());
  submit(call->script(), keys.all(), call->arguments(), [this, call](Result<resp::Value> value) {
    if (!value.ok()) note_asked(call->topic());
    if (value.ok() && call->keep_part(*value)) {
      note(call->shard(), call->topic(), *value);
      return send_part(call);
    }
    call->answer(std::move(value));
  });
  call->note_sent();
}

void RedisEngine::send_all_joint() {
  for (redis::JointCall& call : std::exchange(joint_calls_, {})) send_joint(std::move(call));
}

bool RedisEngine::note(uint32_t shard, std::string_view topic, const resp::Value& answer) {
  if (answer.type != resp::Value::Type::kArray || answer.items.size() < 2) return false;
  note_next(shard, answer.items[0]);
  const int64_t outlets = answer.items[1].integer;
  if ((outlets & kOwnOutlet) != 0) note_ready(shard, topic, Outlet::kTopic);
  if ((outlets & kCallbackOutlet) != 0) note_ready(shard, topic, Outlet::kCallback);
  return true;
}

void RedisEngine::note_next(uint32_t shard, const resp::Value& next) {
  if (next.type != resp::Value::Type::kBulk) return;
  const Moment moment = redis::read_moment(next.text);
  driving_.set_next(shard, moment);
  // It may be now because a body is missing, and the answer of another call may say a later time.
  if (cold_ != nullptr && moment <= now_) wished_shards_.insert(shard);
}

void RedisEngine::note_ready(uint32_t shard, std::string_view topic, Outlet outlet) {
  hints_.note_ready(shard, topic, outlet);
  ready_topics_.emplace(topic, outlet);
}

Error RedisEngine::not_understood(std::string_view script) {
  return {ErrorCode::kInternal, std::string(script), "the reply of the script is malformed"};
}

void RedisEngine::set_wakeup(std::function<void()> wakeup) {
  // Replies of Redis arrive while the loop runs, and poll() is called after each turn.
  if (cold_ != nullptr) cold_->set_wakeup(std::move(wakeup));
}

// ---- background work: processes what is due in its shards, and listens to other servers

using redis::Arguments;
using redis::TopicKeys;

namespace {

constexpr uint32_t kEntriesPerRound = 64;  ///< topics that one round processes
constexpr uint32_t kDuePerCall = 1'000;
constexpr uint32_t kEndedPerCall = 500;
constexpr uint32_t kExpiredPerCall = 500;
/// Missed changes are found after this time at the latest.
constexpr Millis kMissedPeriod = std::chrono::seconds{30};
constexpr uint32_t kMissedTopicsPerCall = 200;
/// A topic is not mended again before this time, so that damage that cannot be mended is not
/// searched for all the time.
constexpr Millis kMendPeriod = std::chrono::minutes{10};
constexpr uint32_t kMendedPerCall = 500;
constexpr uint32_t kMendedBytesPerCall = 4 * 1024 * 1024;
/// an expired lease is reported again after this time if it was not resolved
constexpr Millis kTellAgain{5'000};

/// Between two polls, at most.
constexpr size_t kMostDueTold = 10'000;
constexpr size_t kMostTold = 1'000;

/// Entries of a shard's head that are about the cold store.
constexpr char kCool = 'c';
constexpr char kWarm = 'w';

/// "3@name:rest" -> 3, "name", "rest".
struct News {
  uint32_t shard = 0;
  std::string_view server;
  std::string_view rest;
};

/// Takes "5:order" from the front of a text; nullopt: it is no such text.
std::optional<std::string_view> take_counted(std::string_view& text) {
  size_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  const auto digits = static_cast<size_t>(end - text.data());
  if (error != std::errc{} || digits == text.size() || *end != ':') return std::nullopt;
  if (size > text.size() - digits - 1) return std::nullopt;
  const std::string_view taken = text.substr(digits + 1, size);
  text.remove_prefix(digits + 1 + size);
  return taken;
}

std::optional<News> read_news(std::string_view text) {
  News news;
  const size_t at = text.find('@');
  const size_t colon = text.find(':', at);
  if (at == std::string_view::npos || colon == std::string_view::npos) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + at, news.shard);
  if (error != std::errc{} || end != text.data() + at) return std::nullopt;
  news.server = text.substr(at + 1, colon - at - 1);
  news.rest = text.substr(colon + 1);
  return news;
}

}  // namespace

RedisEngine::~RedisEngine() {
  send_all_joint();
  for (uint32_t shard = 0; shard < keys_.shards(); ++shard) {
    if (!driving_.is_mine(shard)) continue;
    const std::string driver = keys_.in_shard(shard, "driver");
    const std::string_view key = driver;
    const std::string_view server = options_.server;
    client_.run(redis::scripts::kResign, {&key, 1}, {&server, 1}, [](const Result<resp::Value>&) {});
  }
}

Moment RedisEngine::tick(Moment now) {
  if (options_.only_looks) return kNever;
  if (doubt_.wants_look(now, client_.is_connected())) look_at_everything();
  for (uint32_t shard = 0; shard < keys_.shards(); ++shard) {
    if (driving_.wants_round(shard, now)) begin_round(shard, now);
  }
  refresh_usage(now);
  look_for_missed(now);
  Moment next = driving_.next_round();
  if (cold_ != nullptr) {
    now_ = now;
    for (const uint32_t shard : std::exchange(far_shards_, {})) look_at_cold(now, shard, kCool);
    for (const uint32_t shard : std::exchange(wished_shards_, {})) look_at_cold(now, shard, kWarm);
    next = std::min(next, cold_->tick(now));
  }
  // The replies of a round wake the loop by themselves.
  return std::max(now, next);
}

void RedisEngine::look_at_cold(Moment now, uint32_t shard, char what) {
  // One server is enough: the driver.
  if (cold_ == nullptr || !driving_.is_mine(shard)) return;
  if (what == kCool) cold_->cool(now, shard);
  if (what == kWarm) cold_->fulfil(now, shard);
}

void RedisEngine::begin_round(uint32_t shard, Moment now) {
  driving_.begin_round(shard, now);
  const std::string driver = keys_.in_shard(shard, "driver");
  const std::string next = keys_.in_shard(shard, "next");
  const std::string alarm = keys_.in_shard(shard, "alarm");
  const std::string cool = keys_.in_shard(shard, "cool");
  const std::string warm = keys_.in_shard(shard, "warm");
  const std::string_view all[] = {driver, next, alarm, cool, warm};
  const std::span<const std::string_view> keys(all, cold_ != nullptr ? 5 : 3);
  Arguments arguments;
  arguments.moment(now).text(options_.server).number(driving_.hold().count()).number(kEntriesPerRound);
  run(redis::scripts::kHead, keys, arguments,
      [this, shard](const Result<resp::Value>& answer) { head_came(shard, answer); });
}

void RedisEngine::head_came(uint32_t shard, const Result<resp::Value>& answer) {
  const bool is_understood = answer.ok() && answer->items.size() >= 4;
  if (!is_understood) {
    driving_.note_failed(shard);
  } else if (answer->items[0].integer == 0) {
    driving_.note_theirs(shard, Millis{answer->items[1].integer});
  } else {
    driving_.note_mine(shard);
    driving_.set_next(shard, redis::read_moment(answer->items[2].text));
    driving_.set_alarm(shard, redis::read_moment(answer->items[3].text));
    for (size_t i = 4; i < answer->items.size(); ++i) look_at(shard, answer->items[i].text);
    if (driving_.alarm(shard) <= driving_.round_time(shard)) look_at_schedules(shard);
  }
  end_call(shard);
}

void RedisEngine::end_call(uint32_t shard) {
  if (!driving_.end_call(shard)) return;
  // There was more than one round can do.
  const Moment now = driving_.round_time(shard);
  const Moment next = std::min(driving_.next(shard), driving_.alarm(shard));
  if (driving_.is_mine(shard) && next <= now) begin_round(shard, now);
}

void RedisEngine::look_at(uint32_t shard, std::string_view entry) {
  if (entry.size() == 1) return look_at_cold(driving_.round_time(shard), shard, entry.front());
  if (entry.empty()) return;
  std::string topic(entry.substr(1));
  const TopicKeys keys = keys_.topic(shard, topic);
  Arguments arguments = arguments_for(driving_.round_time(shard), shard, topic);
  driving_.add_call(shard);
  const net::redis::Script* script = &redis::scripts::kDue;
  if (entry.front() == 'd') {
    arguments.number(kDuePerCall);
  } else if (entry.front() == 'l') {
    script = &redis::scripts::kEnded;
    arguments.number(kEndedPerCall).number(kTellAgain.count());
  } else {
    script = &redis::scripts::kExpire;
    arguments.number(kExpiredPerCall);
  }
  run(*script, keys.all(), arguments, [this, shard, topic](const Result<resp::Value>& answer) {
    if (!answer.ok() || !note(shard, topic, *answer)) {
      note_asked(topic);
      driving_.note_failed(shard);
    } else {
      note_ended(shard, topic, *answer);
    }
    end_call(shard);
  });
}

void RedisEngine::note_ended(uint32_t shard, const std::string& topic, const resp::Value& answer) {
  for (size_t i = 2; i + 2 < answer.items.size(); i += 3) {
    LeaseInfo info;
    info.topic = topic;
    info.lease = fmt::format("{}.{}", shard, answer.items[i].text);
    info.attempts = static_cast<uint32_t>(answer.items[i + 1].integer);
    info.options = answer.items[i + 2].text;
    ended_.push_back(std::move(info));
  }
}

void RedisEngine::hear(std::string_view message) {
  if (message.empty()) return;
  if (message.front() == 's') {
    settings_changed_ = true;
    return;
  }
  std::optional<News> news = read_news(message.substr(1));
  if (news && news->server.ends_with(kWatchMark)) news->server.remove_suffix(kWatchMark.size());
  if (news && message.front() == 'd') return hear_due(news->rest);
  if (news && message.front() == 't') {
    if (news->server != sender_ && told_.size() < kMostTold) told_.emplace_back(news->rest);
    return;
  }
  const bool is_known = news && news->server == sender_ && !doubt_.is_listening();
  if (!news || is_known) return;
  if (message.front() == 'e') {
    driving_.note_earlier(news->shard, redis::read_moment(news->rest));
  } else if (message.front() == 'r' && news->rest.size() > 1 && news->shard < keys_.shards()) {
    note_ready(news->shard, news->rest.substr(1),
               news->rest.front() == '0' ? Outlet::kTopic : Outlet::kCallback);
  }
}

void RedisEngine::hear_due(std::string_view text) {
  if (!watches_due_) return;
  const auto topic = take_counted(text);
  while (topic && !text.empty()) {
    const auto id = take_counted(text);
    const auto group = id ? take_counted(text) : std::nullopt;
    if (!group) return;
    if (due_jobs_.size() < kMostDueTold) {
      due_jobs_.push_back({std::string(*topic), std::string(*id), std::string(*group)});
    } else {
      ++due_left_out_;
    }
  }
}

void RedisEngine::watch_due(bool is_on) { watches_due_ = is_on; }

void RedisEngine::tell_others(std::string_view message) {
  const std::string text = fmt::format("t0@{}:{}", sender_, message);
  call(channel_, {"PUBLISH", channel_, text}, [](const Result<resp::Value>&) {});
}

void RedisEngine::note_asked(std::string_view topic) {
  note_asked(topic, Outlet::kTopic);
  note_asked(topic, Outlet::kCallback);
}

void RedisEngine::look_at_everything() {
  // Checked again even if it is known: a new master may have lost the layout, and another server may then
  // have stored a different one.
  check_layout();
  driving_.forget();
  settings_changed_ = true;
  hints_.forget();
  ready_topics_.insert(asked_topics_.begin(), asked_topics_.end());
  missed_asked_ = Moment::min();
}

void RedisEngine::look_for_missed(Moment now) {
  // A clock that was set back must not delay it.
  const bool is_due = now < missed_asked_ || now - kMissedPeriod >= missed_asked_;
  if (!is_due || missed_walks_ > 0) return;
  missed_asked_ = now;
  for (uint32_t shard = 0; shard < keys_.shards(); ++shard) {
    ++missed_walks_;
    look_for_missed_in(now, shard, {});
    if (keys_.has_schedules()) mend_schedules(now, shard, {});
  }
}

void RedisEngine::look_for_missed_in(Moment now, uint32_t shard, std::string_view after) {
  Arguments arguments = arguments_for(now, shard, {});
  arguments.text(after).number(kMissedTopicsPerCall);
  run(redis::scripts::kMissed, shard_keys(shard).all(), arguments,
      [this, now, shard](const Result<resp::Value>& answer) {
        // If the reply is lost, the walk is repeated after the reconnect (Doubt).
        const bool is_understood = answer.ok() && answer->items.size() == 4 && note_topics(shard, *answer);
        if (is_understood) mend(now, shard, answer->items[3]);
        const std::string_view last = is_understood ? std::string_view(answer->items[2].text) : "";
        if (!last.empty()) return look_for_missed_in(now, shard, last);
        --missed_walks_;
      });
}

/// Topics of a shard that are being mended; the next one is last.
struct RedisEngine::Mending {
  Moment now;
  uint32_t shard = 0;
  std::vector<std::string> topics;
  std::string from = "0";  ///< where to continue in the pool of the last topic
};

bool RedisEngine::begins_mending(Moment now, uint32_t shard, std::string_view topic) {
  std::erase_if(mended_topics_,
                [&](const auto& entry) { return now < entry.second || now - kMendPeriod >= entry.second; });
  return mended_topics_.emplace(std::pair(shard, std::string(topic)), now).second;
}

void RedisEngine::mend(Moment now, uint32_t shard, const resp::Value& topics) {
  // One server is enough: the driver.
  if (!driving_.is_mine(shard) || topics.items.empty()) return;
  auto mending = std::make_shared<Mending>();
  mending->now = now;
  mending->shard = shard;
  for (const resp::Value& topic : topics.items) {
    if (begins_mending(now, shard, topic.text)) mending->topics.push_back(topic.text);
  }
  mend_next(mending);
}

void RedisEngine::mend_next(const std::shared_ptr<Mending>& mending) {
  if (mending->topics.empty()) return;
  const std::string& topic = mending->topics.back();
  Arguments arguments = arguments_for(mending->now, mending->shard, topic);
  arguments.text(mending->from).number(kMendedPerCall).number(kMendedBytesPerCall);
  run(redis::scripts::kMend, keys_.topic(mending->shard, topic).all(), arguments,
      [this, mending](const Result<resp::Value>& answer) {
        const bool is_understood =
            answer.ok() && answer->items.size() == 4 && note(mending->shard, mending->topics.back(), *answer);
        if (is_understood) {
          mended_ += static_cast<uint64_t>(answer->items[3].integer);
          mending->from = answer->items[2].text;
        }
        if (!is_understood || mending->from == "0") {
          mending->topics.pop_back();
          mending->from = "0";
        }
        mend_next(mending);
      });
}

bool RedisEngine::poll(EngineListener& listener) {
  send_all_joint();
  // Replies and listeners may call verbs; their replies and events are delivered by the next poll().
  Answers answers = std::exchange(answers_, {});
  bool any = !answers.empty();
  for (auto& give : answers) give();
  any |= client_.poll() > 0;
  if (cold_ != nullptr) any |= cold_->poll();
  const auto ready_topics = std::exchange(ready_topics_, {});
  for (const auto& [topic, outlet] : ready_topics) listener.on_ready(topic, outlet);
  std::vector<LeaseInfo> ended = std::exchange(ended_, {});
  auto due_schedules = std::exchange(due_schedules_, {});
  any |= !ready_topics.empty() || !ended.empty() || !due_schedules.empty();
  if (!ended.empty()) listener.on_expired(std::move(ended));
  for (std::vector<StoredSchedule>& report : due_schedules) listener.on_schedules_due(std::move(report));
  if (!due_jobs_.empty() || due_left_out_ > 0) {
    any = true;
    listener.on_due(std::exchange(due_jobs_, {}), std::exchange(due_left_out_, 0));
  }
  for (const std::string& message : std::exchange(told_, {})) listener.on_told(message);
  if (std::exchange(settings_changed_, false)) {
    any = true;
    listener.on_settings_changed();
  }
  send_all_joint();  // of the verbs called above
  nonce_ = random_.between(1, redis::kMostNonce);
  return any;
}

}  // namespace delayq
