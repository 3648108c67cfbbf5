#pragma once

#include "engine/redis/lease.h"
#include "tests/support/job_spec.h"
#include "tests/support/redis_scripts.h"

namespace delayq::redis {

/// Adds the calls for a job's life. The arguments of these scripts are built only here.
class LifeScriptTest : public ScriptTest {
 protected:
  using JobSpec = support::JobSpec;

  /// The arguments of a take.
  struct Wish {
    uint32_t count = 10;
    int64_t lease_until = kNow + 60'000;
    uint32_t limit = 0;
    bool is_auto = false;
    int64_t keep_until = 0;
    uint32_t keep_count = 0;
    uint32_t due_before = 1'000;  ///< besides `count`
    uint64_t most_bytes = Limits::kPopBytes;
    int outlet = 0;
    uint64_t nonce = 0;
  };

  static JobSpec spec(std::string id, int64_t due = kNow + 500) {
    return JobSpec("t", std::move(id)).due_at(from_unix_ms(due)).with_body(std::string(kBody));
  }

  /// All jobs must have the same topic.
  resp::Value push(const std::vector<JobSpec>& jobs, int64_t now = kNow) {
    constexpr uint32_t kUnique = 4;
    constexpr uint32_t kHasGroup = 8;
    Arguments arguments = about(jobs[0].topic, now);
    for (const JobSpec& job : jobs) {
      const RecordPieces record = write_new_job(job.view(), from_unix_ms(now), arguments.storage());
      uint32_t flags = static_cast<uint32_t>(job.on_conflict);
      if (job.unique_across_topics) flags += kUnique;
      if (!job.group.empty()) flags += kHasGroup;
      arguments.text(job.id).text(record.before).text(record.after).moment(job.due).number(flags);
    }
    return run(scripts::kPush, jobs[0].topic, arguments);
  }

  /// Pushes ready jobs of 1 MiB each, with letters as ids.
  void push_large(std::string_view ids) {
    for (const char id : ids)
      push({spec(std::string(1, id), kNow).with_body(std::string(size_t{1} << 20, id))});
  }

  resp::Value take(const Wish& wish, int64_t now = kNow, std::string_view topic = "t") {
    Arguments arguments = about(topic, now);
    arguments.number(wish.outlet).number(wish.lease_until).number(wish.limit);
    arguments.number(wish.is_auto ? 1 : 0).number(wish.keep_until).number(wish.keep_count);
    arguments.number(wish.due_before).number(static_cast<int64_t>(wish.most_bytes)).number(wish.nonce);
    arguments.number(wish.count);
    return run(scripts::kTake, topic, arguments);
  }
  /// The ids in the reply of a take.
  static std::vector<std::string> ids(const resp::Value& taken) {
    std::vector<std::string> ids;
    for (size_t i = 2; i + 1 < taken.items.size(); i += 2) ids.push_back(taken.items[i].text);
    return ids;
  }
  /// Whether the bound of bytes ended the take.
  static bool is_cut(const resp::Value& taken) { return taken.items.size() % 2 == 1; }
  /// Pushes a ready job, takes it, and returns its lease without the shard: "1234" or "1234.56".
  std::string lease_of(const JobSpec& job, int64_t until = kNow + 60'000, uint64_t nonce = 0) {
    push({job});
    Wish wish;
    wish.count = 1;
    wish.lease_until = until;
    wish.nonce = nonce;
    const resp::Value taken = take(wish, kNow, job.topic);
    if (ids(taken) != std::vector{job.id}) throw std::runtime_error("the job was not taken: " + job.id);
    const Record record = *read_record(taken.items.at(3).text);
    return lease_text({0, record.lease, record.nonce}).substr(2);
  }

  /// A lease as arguments of a script, number and nonce, followed by these words.
  static std::vector<std::string> words_of(const std::string& lease,
                                           const std::vector<std::string>& more = {}) {
    const size_t dot = lease.find('.');
    std::vector<std::string> words{lease.substr(0, dot),
                                   dot == std::string::npos ? "0" : lease.substr(dot + 1)};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  /// Finishes jobs by their leases.
  resp::Value ack(const std::vector<std::string>& leases, const std::string& keep_until = "0",
                  const std::string& keep_count = "0", const std::string& outcome = "", int64_t now = kNow) {
    std::vector<std::string> own{keep_until, keep_count};
    for (const std::string& lease : leases) {
      for (std::string& word : words_of(lease, {outcome})) own.push_back(std::move(word));
    }
    return run(scripts::kAck, "t", own, now);
  }

  /// The script's own results, without the two values that every reply begins with.
  static std::string said(const resp::Value& answer) {
    resp::Value own = answer;
    own.items.erase(own.items.begin(), own.items.begin() + 2);
    return support::text_of(own);
  }
};

}  // namespace delayq::redis
