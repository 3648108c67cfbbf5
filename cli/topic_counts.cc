#include "cli/topic_counts.h"

namespace delayq::cli {

Result<std::map<std::string, TopicCounts>> count_topics(const Ask& ask) {
  std::map<std::string, TopicCounts> topics;
  Words command{"TOPICS"};
  for (;;) {
    const Result<resp::Value> reply = ask(command);
    if (!reply) return reply.error();
    if (reply->items.size() != 2) return unexpected_reply();
    for (const resp::Value& row : reply->items[1].items) {
      if (row.items.size() <= TopicCounts::kStates.size()) return unexpected_reply();
      TopicCounts& counts = topics[row.items[0].text];
      for (size_t i = 0; i < counts.states.size(); ++i)
        counts.states[i] = static_cast<uint64_t>(number_in(row.items[i + 1]).value_or(0));
    }
    const std::string& cursor = reply->items[0].text;
    if (cursor.empty()) return topics;
    command = {"TOPICS", cursor};
  }
}

}  // namespace delayq::cli
