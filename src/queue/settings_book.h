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

/// The settings of all topics: their own and those in force. The engine stores them; they are read at start,
/// and again when another server has changed them.
class SettingsBook {
 public:
  explicit SettingsBook(const Settings& configured);

  /// Replaces the defaults of the configuration. Settings stored under "*" override them.
  void configure(Settings defaults);
  /// Applies the settings at once; they are durable when the reply is called. Settings with nothing set are
  /// removed. The name is a topic's or "*".
  void set(Context& context, std::string_view name, Settings settings, Reply<void> reply);
  /// Applies the stored settings at start. Returns an error for the first that cannot be read, and applies
  /// the others.
  Status load(Context& context, const std::vector<TopicSettings>& stored);

  struct Changed {
    std::string name;
    bool keeps_less;  ///< see keeps_less()
  };
  /// Replaces the settings by the stored ones. Topics without stored settings fall back to the defaults.
  /// Settings that cannot be read remain as they were. Returns the topics whose settings changed.
  std::vector<Changed> reload(Context& context, const std::vector<TopicSettings>& stored);
  /// How often set() was called. If it was called after the engine was asked for the stored settings, they
  /// are outdated.
  uint64_t sets() const { return sets_; }

  /// The settings of the topic (or "*") itself.
  const Settings& own(std::string_view name) const;
  /// The settings in force for the topic; for "*", the defaults.
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
    TopicPtr topic;  ///< a reference, so that the Janitor does not forget the topic
  };

  /// Delivery by webhooks needs a callback. Delivery to Redis needs a configured Redis, and a key that the
  /// engine does not use.
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
