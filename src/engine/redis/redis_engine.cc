#include "engine/redis/redis_engine.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "core/siphash.h"
#include "engine/redis/layout.h"

namespace delayq {

using net::redis::Answer;
using net::redis::Script;
using redis::Arguments;

namespace {

constexpr int64_t kOwnOutlet = 1;
constexpr int64_t kCallbackOutlet = 2;
/// They are looked through for each verb.
constexpr size_t kMostJointCalls = 32;
/// Makes of a server's name what its nonces begin with.
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
      keys_(options_.prefix, options_.tags),
      channel_(keys_.shared(redis::kNewsChannel)),
      driving_(keys_.shards(), options_.hold),
      hints_(keys_.shards()),
      random_(siphash128(kNonces, options_.server).low),
      nonce_(random_.between(1, redis::kMostNonce)) {
  for (uint32_t shard = 0; shard < keys_.shards(); ++shard)
    senders_.push_back(fmt::format("{}@{}", shard, options_.server));
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

void RedisEngine::check_layout() {
  redis::settle_layout(client_, keys_.shared("meta"), keys_.tags(),
                       [this, alive = std::weak_ptr(alive_)](const Result<resp::Value>& answer) {
                         if (!alive.expired()) layout_came(answer);
                       });
}

void RedisEngine::layout_came(const Result<resp::Value>& answer) {
  // Without an answer there is no connection; with the next one it is asked again.
  const auto layout = answer.ok() ? redis::read_layout(*answer) : std::nullopt;
  if (!layout) return;
  const auto tags = redis::tags_of(*layout, options_.prefix, keys_.shards());
  refused_.reset();
  if (!tags.ok()) {
    refused_ = tags.error();
  } else if (*tags != keys_.tags()) {
    refused_ = Error{ErrorCode::kUnavailable, "redis",
                     "the shards have other tags than at the start of this server: start it again"};
  }
}

Arguments RedisEngine::arguments_for(Moment now, uint32_t shard, std::string_view topic) const {
  Arguments arguments;
  arguments.moment(now).text(topic).view(channel_).view(senders_[shard]);
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
  const resp::Value& next = answer.items[0];
  if (next.type == resp::Value::Type::kBulk) driving_.set_next(shard, redis::read_moment(next.text));
  const int64_t outlets = answer.items[1].integer;
  if ((outlets & kOwnOutlet) != 0) note_ready(shard, topic, Outlet::kTopic);
  if ((outlets & kCallbackOutlet) != 0) note_ready(shard, topic, Outlet::kCallback);
  return true;
}

void RedisEngine::note_ready(uint32_t shard, std::string_view topic, Outlet outlet) {
  hints_.note_ready(shard, topic, outlet);
  ready_topics_.emplace(topic, outlet);
}

Error RedisEngine::not_understood(std::string_view script) {
  return {ErrorCode::kInternal, std::string(script), "the script's answer is not what it promises"};
}

void RedisEngine::set_wakeup(std::function<void()> wakeup) {
  // Never called: what comes from Redis comes while the loop turns, and after a turn poll() is called.
  (void)wakeup;
}

}  // namespace delayq
