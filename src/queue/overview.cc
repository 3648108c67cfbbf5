#include "queue/overview.h"

#include <fmt/format.h>

#include "core/crc32c.h"

namespace delayq {

namespace {

/// What a cursor of that listing begins with.
std::string listing_of(const ListRequest& request) {
  return fmt::format("{}{:08x}.", static_cast<int>(request.state),
                     crc32c(0, request.topic.data(), request.topic.size()));
}

}  // namespace

void Overview::list(const ListRequest& request, Reply<JobPage> reply) {
  Status status = check_topic(request.topic);
  if (status.ok()) status = check_count("limit", request.limit, Limits::kPageJobs);
  // A cursor says of which listing it is: another one would go on anywhere, or nowhere.
  const std::string listing = listing_of(request);
  ListRequest wanted = request;
  if (status.ok() && !request.cursor.empty()) {
    if (request.cursor.starts_with(listing)) {
      wanted.cursor.remove_prefix(listing.size());
    } else {
      status = invalid("cursor", "cursor: not one that a list of this topic and state has answered");
    }
  }
  if (!status) return context_.refuse(reply, in_verb("list", status.error()));
  context_.engine.list(context_.now, wanted,
                       [this, listing, reply = std::move(reply)](Result<JobPage> page) mutable {
                         if (page.ok() && !page->cursor.empty()) page->cursor.insert(0, listing);
                         context_.answer(reply, std::move(page));
                       });
}

void Overview::topics(std::string_view cursor, uint32_t limit, Reply<TopicSummaries> reply) {
  if (const Status status = check_count("limit", limit, Limits::kPageJobs); !status) {
    return context_.refuse(reply, in_verb("topics", status.error()));
  }
  context_.engine.topics(context_.now, cursor, limit,
                         [this, cursor = std::string{cursor}, limit, reply = std::move(reply),
                          steps = context_.begin_steps()](Result<TopicPage> page) mutable {
                           if (!page.ok()) return context_.refuse(reply, page.error());
                           context_.answer(reply, Result{with_settings(std::move(*page), cursor, limit)});
                         });
}

TopicSummaries Overview::with_settings(TopicPage page, std::string_view cursor, uint32_t limit) const {
  // The engine knows the topics that have jobs, the book those that have settings: two sorted lists become
  // one.
  const std::vector<std::string> names = settings_.names_after(cursor, limit + 1);
  TopicSummaries merged;
  auto row = page.topics.begin();
  auto name = names.begin();
  while (merged.topics.size() <= limit && (row != page.topics.end() || name != names.end())) {
    if (name == names.end() && row == page.topics.end()) break;
    const bool from_engine = row != page.topics.end() && (name == names.end() || row->topic <= *name);
    // Behind the engine's cursor there may be more of its topics; they come with the next page.
    if (!from_engine && row == page.topics.end() && !page.cursor.empty() && *name > page.cursor) break;
    if (from_engine && name != names.end() && row->topic == *name) ++name;
    TopicSummary& summary = merged.topics.emplace_back();
    if (from_engine) {
      summary.topic = std::move(row->topic);
      summary.counts = row->counts;
      ++row;
    } else {
      summary.topic = *name++;
    }
    summary.paused = settings_.effective(summary.topic).paused;
    if (const TopicPtr found = context_.topics.find(summary.topic)) {
      summary.tallies = found->tallies;
      summary.lateness = found->lateness;
      summary.waiters = found->idle.size();
    }
  }
  if (merged.topics.size() > limit) {
    merged.topics.pop_back();
    merged.cursor = merged.topics.back().topic;
  } else {
    merged.cursor = page.cursor;
  }
  return merged;
}

void Overview::stats(std::string_view topic, Reply<TopicStats> reply) {
  if (const Status status = check_topic(topic); !status) {
    return context_.refuse(reply, in_verb("stats", status.error()));
  }
  context_.engine.counts(context_.now, topic,
                         [this, name = std::string{topic}, reply = std::move(reply),
                          steps = context_.begin_steps()](const Result<TopicCounts>& counts) mutable {
                           if (!counts.ok()) return context_.refuse(reply, counts.error());
                           TopicStats stats;
                           stats.counts = *counts;
                           stats.settings = settings_.effective(name);
                           if (const Status status = settings_.check_delivery(context_, name); !status)
                             stats.delivery_problem = status.error().detail;
                           if (const TopicPtr found = context_.topics.find(name)) {
                             stats.tallies = found->tallies;
                             stats.lateness = found->lateness;
                             stats.waiters = found->idle.size();
                           }
                           context_.answer(reply, Result{std::move(stats)});
                         });
}

void Overview::totals(Reply<TotalStats> reply) {
  context_.engine.counts(context_.now, {},
                         [this, reply = std::move(reply),
                          steps = context_.begin_steps()](const Result<TopicCounts>& counts) mutable {
                           if (!counts.ok()) return context_.refuse(reply, counts.error());
                           TotalStats stats;
                           stats.counts = *counts;
                           stats.tallies = context_.topics.totals();
                           stats.lateness = context_.topics.total_lateness();
                           stats.usage = context_.engine.usage();
                           stats.commits = context_.engine.commits();
                           stats.waiters = hand_over_.waiters();
                           stats.unanswered_bytes = admission_.unanswered_bytes();
                           context_.answer(reply, Result{stats});
                         });
}

void Overview::forecast(const ForecastRequest& request, Reply<Forecast> reply) {
  Status status = request.topic.empty() ? Status{} : check_topic(request.topic);
  if (status.ok()) status = check_count("bins", request.bins, Limits::kForecastBins);
  if (status.ok() && request.to <= request.from) {
    status = invalid("to", "from and to: to must be after from");
  }
  if (!status) return context_.refuse(reply, in_verb("forecast", status.error()));
  context_.engine.forecast(context_.now, request, std::move(reply));
}

}  // namespace delayq
