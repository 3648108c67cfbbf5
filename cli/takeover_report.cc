#include "cli/takeover_report.h"

#include <fmt/format.h>

#include "cli/human.h"
#include "json/writer.h"

namespace delayq::cli {

namespace {

constexpr size_t kFirstLines = 3;
constexpr size_t kShownLine = 160;
constexpr size_t kShownName = 60;
constexpr size_t kMostTopics = 40;
/// What is wrong may be said in many ways; the rest is counted as one.
constexpr size_t kMostProblems = 20;

std::string number(uint64_t count) { return grouped(static_cast<int64_t>(count)); }

}  // namespace

void TakeoverReport::found(const seeds::SeedJob& job, Moment now) {
  ++jobs_;
  Topic& topic = topics_[job.topic];
  const bool is_due = job.due <= now;
  ++(is_due ? topic.due : topic.delayed);
  due_ += is_due ? 1 : 0;
  if (first_.size() < kFirstLines) first_.push_back(seeds::line_of(job, now));
}

void TakeoverReport::unreadable(const std::string& where, const std::string& why) {
  ++unreadable_;
  const bool is_known = problems_.contains(why) || problems_.size() < kMostProblems;
  Problem& problem = problems_[is_known ? why : "something else"];
  if (problem.count++ == 0) problem.example = where;
}

void TakeoverReport::answered(const std::string& where, const resp::Value& answer) {
  const std::optional<Error> error = counts_.add(answer);
  if (!error) return;
  unreadable(where, error->detail);
  --unreadable_;  // counted as failed
}

void TakeoverReport::left(const std::string& where) {
  ++left_;
  unreadable(where, "not removed there: another job has this id here");
  --unreadable_;
}

std::string TakeoverReport::problems_text() const {
  std::string text;
  for (const auto& [why, problem] : problems_)
    text += fmt::format("  {}  {}, as {}\n", number(problem.count), printable(why, kShownLine),
                        printable(problem.example, kShownName));
  return text;
}

std::string TakeoverReport::text(const Heading& heading) const {
  std::string text = fmt::format("{} in {}: {} jobs wait, {} of them are due", heading.system, heading.from,
                                 number(jobs_), number(due_));
  if (over_ > 0) text += fmt::format("; {} that are over stay there", number(over_));
  if (gone_ > 0) text += fmt::format("; {} ids without a job: removed there, or expired", number(gone_));
  text += "\n";
  Table table;
  table.row({"TOPIC", "DELAYED", "DUE"});
  size_t shown = 0;
  for (const auto& [name, topic] : topics_) {
    if (++shown > kMostTopics) break;
    table.row({printable(name, kShownName), number(topic.delayed), number(topic.due)});
  }
  if (!topics_.empty()) text += table.text();
  if (topics_.size() > kMostTopics) text += fmt::format("and {} more topics\n", topics_.size() - kMostTopics);
  if (unreadable_ > 0) text += fmt::format("{} cannot be taken over:\n", number(unreadable_));
  if (unreadable_ == 0 && !problems_.empty()) text += "Problems:\n";
  text += problems_text();
  if (heading.is_dry_run) {
    if (!first_.empty()) text += "The first of them:\n";
    for (const std::string& line : first_) text += printable(line, kShownLine) + "\n";
    if (jobs_ + unreadable_ + gone_ + over_ == 0)
      return text + "Nothing was changed. Are --from and the database behind the last / of the URL right?";
    return text + fmt::format("Nothing was changed. --yes takes them over into {}.", heading.to);
  }
  text += fmt::format("Taken over into {}: {}", heading.to, counts_.text());
  if (heading.removes) text += fmt::format("; {} removed there", number(removed_));
  return text;
}

std::string TakeoverReport::json(const Heading& heading) const {
  std::string text;
  json::Writer json(text);
  json.begin_object().key("system").text(heading.system).key("from").text(heading.from);
  json.key("dry_run").boolean(heading.is_dry_run);
  json.key("jobs").number(jobs_).key("due").number(due_).key("unreadable").number(unreadable_);
  json.key("over").number(over_).key("gone").number(gone_).key("topics").begin_array();
  for (const auto& [name, topic] : topics_) {
    json.begin_object().key("topic").text(name).key("delayed").number(topic.delayed);
    json.key("due").number(topic.due).end_object();
  }
  json.end_array().key("problems").begin_array();
  for (const auto& [why, problem] : problems_) {
    json.begin_object().key("problem").text(why).key("jobs").number(problem.count);
    json.key("example").text(problem.example).end_object();
  }
  json.end_array();
  if (!heading.is_dry_run) {
    for (const std::string_view outcome : ImportCounts::kOutcomes)
      json.key(outcome).number(counts_.of(outcome));
    json.key("failed").number(counts_.failed()).key("removed").number(removed_).key("left").number(left_);
  }
  json.end_object();
  return text;
}

}  // namespace delayq::cli
