// The queue's notes on topics, and copies.
#include <map>

#include "engine/redis/redis_engine.h"
#include "engine/redis/scripts.h"

namespace delayq {

using redis::Arguments;
using redis::Gather;

void RedisEngine::call(std::string_view key, std::initializer_list<std::string_view> words,
                       net::redis::Answer answer) {
  if (refused_) {
    answers_.push_back(
        [refused = *refused_, answer = std::move(answer)]() mutable { answer(std::move(refused)); });
    return;
  }
  client_.call(key, words,
               [this, alive = std::weak_ptr(alive_), name = std::string(key),
                answer = std::move(answer)](Result<resp::Value> value) mutable {
                 if (!alive.expired())
                   answer(heard(std::move(value), {{}, {}, name, options_.prefix, options_.prefix_name}));
               });
}

void RedisEngine::store_settings(std::string_view topic, std::string_view settings, Reply<bool> reply) {
  const std::string notes = keys_.shared("settings");
  const std::string_view key = notes;
  Arguments arguments;
  arguments.number(0).text(topic).text(channel_).text(options_.server).text(settings);
  auto gather = Gather<bool>::make(true, std::move(reply));
  run(redis::scripts::kSettings, {&key, 1}, arguments,
      gather->expect([](resp::Value&, bool&) -> Status { return {}; }));
  gather->close(answers_);
}

/// A walk through the notes, a piece at a time. It may meet one twice.
struct RedisEngine::Loading {
  std::map<std::string, std::string> notes;
  Reply<std::vector<TopicSettings>> reply;
};

void RedisEngine::load_settings(Reply<std::vector<TopicSettings>> reply) {
  load_next(std::make_shared<Loading>(Loading{{}, std::move(reply)}), "0");
}

void RedisEngine::load_next(const std::shared_ptr<Loading>& loading, std::string_view from) {
  const std::string notes = keys_.shared("settings");
  call(notes, {"HSCAN", notes, from, "COUNT", "500"}, [this, loading](const Result<resp::Value>& answer) {
    if (!answer.ok()) return loading->reply(answer.error());
    if (answer->items.size() != 2 || answer->items[0].text.empty())
      return loading->reply(not_understood("HSCAN"));
    const std::vector<resp::Value>& found = answer->items[1].items;
    for (size_t i = 0; i + 1 < found.size(); i += 2) loading->notes[found[i].text] = found[i + 1].text;
    const std::string& next = answer->items[0].text;
    if (next != "0") return load_next(loading, next);
    std::vector<TopicSettings> all;
    for (auto& [topic, settings] : loading->notes) all.push_back({topic, std::move(settings)});
    loading->reply(std::move(all));
  });
}

void RedisEngine::backup(std::string_view name, Reply<BackupReport> reply) {
  (void)name;
  answer<BackupReport>(reply,
                       Error{ErrorCode::kUnavailable, "backup",
                             "the jobs are in Redis, which makes its own copies (BGSAVE); or use export"});
}

}  // namespace delayq
