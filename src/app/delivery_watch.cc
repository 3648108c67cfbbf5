#include "app/delivery_watch.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "app/redis_storage.h"

namespace delayq {

namespace {

/// An idle connection that was closed, or a Redis that restarts, is back within this time: not worth a log
/// line.
constexpr std::chrono::seconds kPatience{1};
/// How many refused keys are logged. A topic may write to a key of any name, so there is no other bound.
constexpr size_t kMostTold = 100;

std::string lower(std::string_view text) {
  std::string small(text);
  std::transform(small.begin(), small.end(), small.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return small;
}

}  // namespace

void DeliveryWatch::begin(net::redis::Mode mode, RedisNames names) {
  mode_ = mode;
  names_ = std::move(names);
  away_since_.reset();
  is_cut_off_ = takes_nothing_ = false;
  told_.clear();
}

void DeliveryWatch::say(std::string_view why) {
  std::string advice = advice_on_reaching(why, mode_, names_);
  if (advice.empty() && !why.ends_with('?')) advice = fmt::format("is {} right?", names_.url);
  tell_(true, fmt::format("redis delivery: jobs wait until Redis takes them: {}{}{}", why,
                          advice.empty() ? "" : "; ", advice));
}

void DeliveryWatch::say_if_over() {
  if (!is_cut_off_ && !takes_nothing_) tell_(false, "redis delivery: Redis takes jobs again");
}

void DeliveryWatch::look(Clock::time_point now, bool is_connected, std::string_view last_error) {
  if (!names_.is_all_in_url) return;
  if (is_connected) {
    away_since_.reset();
    if (std::exchange(is_cut_off_, false)) say_if_over();
    return;
  }
  if (last_error.empty() || is_cut_off_ || takes_nothing_) return;
  if (!away_since_) away_since_ = now;
  const bool lasts = !advice_on_reaching(last_error, mode_, names_).empty();
  if (!lasts && now - *away_since_ < kPatience) return;
  is_cut_off_ = true;
  say(last_error);
}

void DeliveryWatch::wrote(std::string_view why) {
  if (why.empty()) {
    if (std::exchange(takes_nothing_, false)) say_if_over();
    return;
  }
  if (!is_cut_off_ && !takes_nothing_) say(why);
  takes_nothing_ = true;
}

void DeliveryWatch::refused(std::string_view command, std::string_view key, std::string_view text) {
  if (!text.starts_with("NOPERM") || told_.size() >= kMostTold) return;
  if (!told_.insert(fmt::format("{} {}", command, key)).second) return;
  tell_(true, fmt::format("redis delivery: {} {}: {}; the user of {} needs ~{} +{}", command, key, text,
                          names_.url, key, lower(command)));
}

void DeliveryWatch::greeted(const resp::Value& hello) {
  const resp::Value* const mode = hello.find("mode");
  if (mode == nullptr || mode->text != "cluster" || mode_ == net::redis::Mode::kCluster) return;
  if (!told_.insert("cluster").second) return;
  tell_(true,
        fmt::format("redis delivery: it is a member of a Cluster, which takes only some of the keys: {} is "
                    "redis-cluster://HOST,HOST then",
                    names_.url));
}

}  // namespace delayq
