// Listing jobs page by page.
#include "engine/redis/list_cursor.h"
#include "engine/redis/redis_engine.h"
#include "engine/redis/scripts.h"

namespace delayq {

using redis::Arguments;
using redis::ListCursor;

namespace {

// What one call looks at. A script that runs is all that Redis does.
constexpr uint32_t kJobsPerCall = 1'000;
constexpr uint32_t kBytesPerCall = 4U << 20;
constexpr size_t kPlaceWords = 3;

}  // namespace

struct RedisEngine::Listing {
  Moment now{};
  std::string topic;
  JobState state{};
  std::string id_prefix;
  std::string outcome_contains;
  uint32_t limit = 0;
  bool with_bodies = false;
  Reply<JobPage> reply;
  ListCursor cursor;
  JobPage page;
  size_t bytes = 0;  ///< of the records in it

  /// Adds what a shard said. False: it makes no sense.
  bool read(const resp::Value& answer) {
    const std::vector<resp::Value>& said = answer.items;
    if (said.size() < 3 || said.size() % 2 == 0) return false;
    for (size_t i = 3; i + 1 < said.size(); i += 2) {
      const std::optional<redis::Record> record = redis::read_record(said[i + 1].text);
      if (!record) return false;
      page.jobs.push_back(redis::copy_job(*record, topic, said[i].text, with_bodies, page.storage));
      page.jobs.back().state = state;
      bytes += said[i + 1].text.size();
    }
    cursor.place.clear();
    for (const resp::Value& word : said[2].items)
      cursor.place.push_back(word.type == resp::Value::Type::kInteger ? std::to_string(word.integer)
                                                                      : word.text);
    return true;
  }
};

void RedisEngine::list(Moment now, const ListRequest& request, Reply<JobPage> reply) {
  std::optional<ListCursor> cursor = ListCursor{};
  if (!request.cursor.empty()) cursor = redis::read_cursor(request.cursor, request.state, keys_.shards());
  if (!cursor) {
    return answer<JobPage>(reply,
                           in_verb("list", invalid("cursor", "cursor: not one that a list has answered")));
  }
  auto listing = std::make_shared<Listing>();
  listing->now = now;
  listing->topic = request.topic;
  listing->state = request.state;
  listing->id_prefix = request.id_prefix;
  listing->outcome_contains = request.outcome_contains;
  listing->limit = request.limit;
  listing->with_bodies = request.with_bodies;
  listing->reply = std::move(reply);
  listing->cursor = std::move(*cursor);
  list_next(listing);
}

void RedisEngine::list_next(const std::shared_ptr<Listing>& listing) {
  const uint32_t shard = listing->cursor.shard;
  const redis::TopicKeys keys = keys_.topic(shard, listing->topic);
  Arguments arguments = arguments_for(listing->now, shard, listing->topic);
  arguments.number(static_cast<int>(listing->state)).number(listing->limit - listing->page.jobs.size());
  arguments.number(listing->with_bodies ? 1 : 0).text(listing->id_prefix).text(listing->outcome_contains);
  arguments.number(kJobsPerCall).number(kBytesPerCall);
  for (size_t i = 0; i < kPlaceWords; ++i) {
    arguments.text(i < listing->cursor.place.size() ? std::string_view(listing->cursor.place[i])
                                                    : std::string_view{});
  }
  run(redis::scripts::kList, keys.all(), arguments,
      [this, listing, shard](const Result<resp::Value>& answer) {
        if (!answer.ok()) return listing->reply(answer.error());
        if (!note(shard, listing->topic, *answer) || !listing->read(*answer))
          return listing->reply(not_understood("list"));
        ListCursor& cursor = listing->cursor;
        const bool is_shard_done = cursor.place.empty();
        if (is_shard_done && ++cursor.shard == keys_.shards())
          return listing->reply(std::move(listing->page));
        // The bound is that of a page, too: a shard that was nearly empty does not make it much larger.
        const bool has_room = listing->page.jobs.size() < listing->limit && listing->bytes < kBytesPerCall;
        if (is_shard_done && has_room) return list_next(listing);
        listing->page.cursor = redis::write_cursor(listing->state, cursor);
        listing->reply(std::move(listing->page));
      });
}

}  // namespace delayq
