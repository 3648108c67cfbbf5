#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/container/btree_map.h>

#include "queue/context.h"

namespace delayq {

/// What topics say about their jobs, and what follows from it. Kept by the engine, read from it once at
/// start.
class SettingsBook {
 public:
  explicit SettingsBook(const Settings& configured);

  /// Other defaults from the operator. What is stored under "*" goes before them, as it did before the last.
  void configure(Settings defaults);
  /// Applied at once, stored when answered. Settings that say nothing are removed. The name is a topic's or
  /// "*".
  void set(Context& context, std::string_view name, Settings settings, Reply<void> reply);
  /// What was stored before. Settings that cannot be read are the error that is answered; the others are in
  /// force.
  Status load(Context& context, const std::vector<TopicSettings>& stored);

  struct Changed {
    std::string name;
    bool keeps_less;  ///< as keeps_less() has it
  };
  /// What is stored now, perhaps by others: what is not there says nothing any more. Answers whose settings
  /// are not as they were. What cannot be read stays as it was.
  std::vector<Changed> reload(Context& context, const std::vector<TopicSettings>& stored);
  /// How often set() was called: what was asked for before the last call does not have it.
  uint64_t sets() const { return sets_; }

  /// What the topic (or "*") says itself.
  const Settings& own(std::string_view name) const;
  /// What holds for it; for "*", the defaults.
  const EffectiveSettings& effective(std::string_view topic) const;
  const EffectiveSettings& defaults() const { return defaults_; }

  /// See Queue.
  Status check_delivery(const Context& context, std::string_view topic) const;
  std::vector<std::pair<std::string, Error>> undeliverable(const Context& context) const;

  /// The topics with settings of their own that come after `after` by name, at most `limit`.
  std::vector<std::string> names_after(std::string_view after, size_t limit) const;

 private:
  struct Entry {
    Settings own;
    EffectiveSettings effective;
    TopicPtr topic;  ///< held, so that the janitor leaves it alone
  };

  /// A topic that calls back must say where, and one whose jobs go to Redis needs a server that has one, and
  /// a key that is free there.
  Status check_can_deliver(const Context& context, std::string_view topic, const Settings& settings) const;
  void apply(Context& context, std::string_view name, Settings settings);
  void apply_defaults(Settings settings);
  void refresh(Entry& entry) const;

  uint64_t sets_ = 0;
  Settings configured_;
  Settings stored_defaults_;
  EffectiveSettings defaults_;
  absl::btree_map<std::string, std::unique_ptr<Entry>, std::less<>> topics_;
};

}  // namespace delayq
