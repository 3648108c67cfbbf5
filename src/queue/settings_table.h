#pragma once

#include <cassert>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>

#include "queue/settings.h"

/// The settings of a topic as a table. The rows are in topic_settings.def; the checks, the stored form, the
/// JSON of HTTP, export and import, the keys of [topics.NAME], OpenAPI and the reference pages all go through
/// the rows, so that a new setting is a new row. Code of that sort works on SettingValues and never names a
/// setting; only SettingsTable knows the structs.
namespace delayq {

// ---- kinds of settings. Value is the type of the values.

inline constexpr uint64_t kMax32Bits = std::numeric_limits<uint32_t>::max();

/// A whole number from 0.
struct NumberKind {
  using Value = uint64_t;
  uint64_t most = 0;
  std::string_view zero_means{};  ///< for messages; empty: 0 has no special meaning
  std::string_view schema{};  ///< the OpenAPI schema shared with a field of jobs; empty: made from the range
};

struct DurationKind {
  using Value = Millis;
  Millis least{};
  Millis most{};
  std::string_view zero_means{};  ///< if not empty, zero is allowed and means this
  std::string_view schema{};
};

/// true or false.
struct FlagKind {
  using Value = bool;
};

/// An empty text is always allowed: it overrides a default.
struct TextKind {
  using Value = std::string;
  size_t most_bytes = 0;
  Status (*check)(std::string_view) = nullptr;  ///< further checks of a text that is not empty
  std::string_view pattern{};                   ///< a regular expression for OpenAPI
  std::span<const std::string_view> words{};    ///< the allowed texts, for OpenAPI; empty: any
};

/// One of several words. The value is the index of the word.
struct WordKind {
  using Value = uint64_t;
  Words words;
};

struct BackoffKind {
  using Value = Backoff;
};
struct RateKind {
  using Value = Rate;
};

/// Two parts, `time` and `count`, each of which can be set alone. In the stored form, the setting's number is
/// used when both are set, which older versions understand, too. A part that is set alone has its own number.
struct RetentionKind {
  using Value = RetentionSetting;
  uint64_t time_number = 0;
  uint64_t count_number = 0;
};

/// Texts that are read and stored, and of which only their count is shown.
struct SecretsKind {
  using Value = std::vector<std::string>;
  size_t most = 0;
  Status (*check)(const std::vector<std::string>&) = nullptr;
  std::string_view what{};    ///< for the configuration's reference: "secrets"
  std::string_view schema{};  ///< of one of them, in OpenAPI
};

using SettingKind = std::variant<NumberKind, DurationKind, FlagKind, TextKind, WordKind, BackoffKind,
                                 RateKind, RetentionKind, SecretsKind>;

/// One row of the table, without the structs.
struct Setting {
  uint64_t number = 0;      ///< in the stored form
  std::string_view name{};  ///< in every API and file
  SettingKind kind{};
  std::string_view help{};      ///< one sentence for the configuration's reference
  std::string_view request{};   ///< one sentence or more for the field of an HTTP request
  std::string_view answer{};    ///< for the field of an answer; empty: as in a request
  std::string_view exported{};  ///< for the field of an exported line; empty: as in an answer
};

// ---- values without the structs

/// The value of a setting. Numbers and words are uint64_t.
using SettingValue = std::variant<uint64_t, Millis, bool, std::string, std::vector<std::string>, Backoff,
                                  Rate, RetentionSetting>;

/// The values of settings, one for each row of their table.
struct SettingValues {
  std::span<const Setting> rows;
  std::vector<std::optional<SettingValue>> values;  ///< nullopt: not set

  explicit SettingValues(std::span<const Setting> table) : rows(table), values(table.size()) {}
};

/// Calls `function` with the kind of the row, and with the value as a Value of that kind.
template <class Function>
auto visit_setting(const Setting& row, const SettingValue& value, Function function) {
  return std::visit(
      [&](const auto& kind) {
        return function(kind, std::get<typename std::decay_t<decltype(kind)>::Value>(value));
      },
      row.kind);
}

/// The index of the setting with that name.
std::optional<size_t> find_setting(std::span<const Setting> rows, std::string_view name);

/// See the functions of the same names in queue/settings.h.
Status check_setting(const Setting& row, const SettingValue& value);
Status check_values(const SettingValues& settings);
std::string encode_values(const SettingValues& settings);
Result<SettingValues> decode_values(std::span<const Setting> rows, std::string_view bytes);
Error unknown_setting(std::span<const Setting> rows, std::string_view name);

// ---- values one by one, as texts. A retention has two names, as in the configuration file: "keep_done.time"
// and "keep_done.count".

/// Reads the value of the setting with that name. Values out of range are accepted here and refused by the
/// queue. kInvalid, with the field; a secret is never repeated in the message.
Status set_from_text(SettingValues& settings, std::string_view name, std::string_view text);

/// A number or a flag (0 or 1), or a text that set_from_text() reads.
using SettingWord = std::variant<uint64_t, std::string>;
struct NamedSetting {
  std::string name;
  std::string_view row;  ///< the name of its row, which is the same for both parts of a retention
  SettingWord value;
};
/// Those that are set. Of secrets only the number: "callback_secret_count".
std::vector<NamedSetting> setting_words(const SettingValues& settings);
/// The name of the number of secrets: "callback_secret_count".
std::string count_name(const Setting& secrets);

// ---- the structs

/// A table whose rows are members of two structs: Own, where each may be missing, and Effective.
template <class Own, class Effective>
class SettingsTable {
 public:
  /// Adds a row for a member of both structs.
  template <auto kOwn, auto kEffective>
  void add(Setting row) {
    using Value = std::decay_t<decltype(std::declval<Effective&>().*kEffective)>;
    static_assert(
        std::is_same_v<std::decay_t<decltype(std::declval<Own&>().*kOwn)>, typename OwnSetting<Value>::Type>);
    if constexpr (std::is_same_v<Value, uint32_t>) assert(std::get<NumberKind>(row.kind).most <= kMax32Bits);
    rows_.push_back(row);
    members_.push_back({
        .get = [](const Own& own) { return value_of(own.*kOwn); },
        .set = [](Own& own, const std::optional<SettingValue>& value) { put(value, own.*kOwn); },
        .get_effective = [](const Effective& all) { return any_of(all.*kEffective); },
        .apply = [](const Own& own, Effective& onto) { lay(own.*kOwn, onto.*kEffective); },
        .overlay = [](const Own& above, Own& below) { lay(above.*kOwn, below.*kOwn); },
    });
  }

  std::span<const Setting> rows() const { return rows_; }

  SettingValues values(const Own& own) const {
    SettingValues all{rows_};
    for (size_t i = 0; i < members_.size(); ++i) all.values[i] = members_[i].get(own);
    return all;
  }
  SettingValues effective_values(const Effective& effective) const {
    SettingValues all{rows_};
    for (size_t i = 0; i < members_.size(); ++i) all.values[i] = members_[i].get_effective(effective);
    return all;
  }
  /// REQUIRES: `all` has the rows of this table.
  Own own(const SettingValues& all) const {
    Own own;
    for (size_t i = 0; i < members_.size(); ++i) members_[i].set(own, all.values[i]);
    return own;
  }

  // See the functions of queue/settings.h.
  Status check(const Own& own) const { return check_values(values(own)); }
  void apply(const Own& own, Effective& onto) const {
    for (const Member& member : members_) member.apply(own, onto);
  }
  Own overlay(Own below, const Own& above) const {
    for (const Member& member : members_) member.overlay(above, below);
    return below;
  }
  Status unset(Own& own, std::string_view name) const {
    const std::optional<size_t> place = find_setting(rows_, name);
    if (!place) return unknown_setting(rows_, name);
    members_[*place].set(own, std::nullopt);
    return {};
  }
  std::string encode(const Own& own) const { return encode_values(values(own)); }
  Result<Own> decode(std::string_view bytes) const {
    const Result<SettingValues> all = decode_values(rows_, bytes);
    if (!all) return all.error();
    return own(*all);
  }

 private:
  struct Member {
    std::optional<SettingValue> (*get)(const Own&);
    void (*set)(Own&, const std::optional<SettingValue>&);
    SettingValue (*get_effective)(const Effective&);
    void (*apply)(const Own&, Effective&);
    void (*overlay)(const Own&, Own&);
  };

  /// Words and numbers of 32 bits are uint64_t in a SettingValue.
  template <class T>
  static constexpr bool kIsNumber = std::is_enum_v<T> || (std::is_unsigned_v<T> && !std::is_same_v<T, bool>);

  template <class T>
  static SettingValue any_of(const T& value) {
    if constexpr (kIsNumber<T>)
      return static_cast<uint64_t>(value);
    else
      return value;
  }
  static SettingValue any_of(const Retention& value) { return RetentionSetting(value); }

  template <class T>
  static std::optional<SettingValue> value_of(const std::optional<T>& own) {
    return own ? std::optional(any_of(*own)) : std::nullopt;
  }
  static std::optional<SettingValue> value_of(const RetentionSetting& own) {
    return own.is_unset() ? std::nullopt : std::optional<SettingValue>(own);
  }

  template <class T>
  static void put(const std::optional<SettingValue>& value, std::optional<T>& own) {
    if (!value) return own.reset();
    if constexpr (kIsNumber<T>)
      own = static_cast<T>(std::get<uint64_t>(*value));
    else
      own = std::get<T>(*value);
  }
  static void put(const std::optional<SettingValue>& value, RetentionSetting& own) {
    own = value ? std::get<RetentionSetting>(*value) : RetentionSetting{};
  }

  template <class T, class Onto>
  static void lay(const std::optional<T>& own, Onto& onto) {
    if (own) onto = *own;
  }
  template <class Onto>
  static void lay(const RetentionSetting& own, Onto& onto) {
    lay(own.time, onto.time);
    lay(own.count, onto.count);
  }

  std::vector<Setting> rows_;
  std::vector<Member> members_;
};

/// The table of topic_settings.def.
const SettingsTable<Settings, EffectiveSettings>& topic_settings();

}  // namespace delayq
