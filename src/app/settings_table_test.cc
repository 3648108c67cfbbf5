// A setting of a topic is one row of a table. This test adds one row to a copy of the table and runs
// everything that is made from it; and it compares the settings in openapi.yaml with the table. To write them
// anew:
//   DELAYQ_WRITE_TEXTS=1 build/dev/tests-bin/app_test --gtest_filter='OpenApiSettings.*'
//   tools/reference
#include "queue/settings_table.h"

#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include "api/http/v1.h"
#include "api/transfer/line.h"
#include "core/limits.h"
#include "json/reader.h"
#include "ops/config_table.h"
#include "queue/job_headers.h"
#include "tests/support/committed_text.h"

namespace delayq {
namespace {

using testing::HasSubstr;
using testing::Not;

// ---- the settings of openapi.yaml

/// A text of YAML in single quotes.
std::string quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "''" : std::string(1, c);
  return out + "'";
}

std::string reference(std::string_view schema) {
  return fmt::format("$ref: '#/components/schemas/{}'", schema);
}

double seconds(Millis duration) { return static_cast<double>(duration.count()) / 1000; }

/// The schema of a field in a request; `null` removes the setting.
struct RequestSchema {
  std::string operator()(const NumberKind& kind) const {
    if (!kind.schema.empty()) return reference(kind.schema);
    return fmt::format("type: [integer, 'null'], minimum: 0, maximum: {}", kind.most);
  }
  std::string operator()(const DurationKind& kind) const {
    if (!kind.schema.empty()) return reference(kind.schema);
    const Millis least = kind.zero_means.empty() ? kind.least : Millis::zero();
    return fmt::format("type: [string, number, 'null'], minimum: {}, maximum: {}", seconds(least),
                       seconds(kind.most));
  }
  std::string operator()(const FlagKind& /*kind*/) const { return "type: [boolean, 'null']"; }
  std::string operator()(const TextKind& kind) const {
    if (!kind.words.empty())
      return fmt::format("type: [string, 'null'], enum: ['', {}, null]", fmt::join(kind.words, ", "));
    return fmt::format("type: [string, 'null'], maxLength: {}{}", kind.most_bytes,
                       kind.pattern.empty() ? "" : ", pattern: " + quoted(kind.pattern));
  }
  std::string operator()(const WordKind& kind) const {
    return fmt::format("type: [string, 'null'], enum: [{}, null]", fmt::join(kind.words.names, ", "));
  }
  std::string operator()(const BackoffKind& /*kind*/) const { return reference("Backoff"); }
  std::string operator()(const RateKind& /*kind*/) const { return reference("NewRate"); }
  std::string operator()(const RetentionKind& /*kind*/) const { return reference("NewRetention"); }
  std::string operator()(const SecretsKind& kind) const {
    return fmt::format("type: [array, 'null'], maxItems: {}, items: {{{}}}", kind.most, kind.schema);
  }
};

/// The schema of a field in an answer or in an exported line.
struct AnswerSchema {
  std::string_view retention;  ///< the schema of a retention there

  std::string operator()(const NumberKind& /*kind*/) const { return reference("Count"); }
  std::string operator()(const DurationKind& /*kind*/) const { return "type: string"; }
  std::string operator()(const FlagKind& /*kind*/) const { return "type: boolean"; }
  std::string operator()(const TextKind& /*kind*/) const { return "type: string"; }
  std::string operator()(const WordKind& kind) const {
    return fmt::format("type: string, enum: [{}]", fmt::join(kind.words.names, ", "));
  }
  std::string operator()(const BackoffKind& /*kind*/) const { return "type: string"; }
  std::string operator()(const RateKind& /*kind*/) const { return reference("Rate"); }
  std::string operator()(const RetentionKind& /*kind*/) const { return reference(retention); }
  std::string operator()(const SecretsKind& /*kind*/) const { return reference("Count"); }
};

enum class Place { kRequest, kAnswer, kLine };

std::string name_in(Place place, const Setting& row) {
  const bool is_count = place == Place::kAnswer && std::holds_alternative<SecretsKind>(row.kind);
  return is_count ? count_name(row) : std::string(row.name);
}

/// The properties of the settings at one place, as lines of YAML.
std::string properties(std::span<const Setting> rows, Place place, std::string_view indent) {
  std::string text;
  for (const Setting& row : rows) {
    if (place == Place::kLine && std::holds_alternative<SecretsKind>(row.kind)) continue;
    std::string_view description = row.request;
    if (place != Place::kRequest && !row.answer.empty()) description = row.answer;
    if (place == Place::kLine && !row.exported.empty()) description = row.exported;
    const std::string schema =
        place == Place::kRequest
            ? std::visit(RequestSchema{}, row.kind)
            : std::visit(AnswerSchema{place == Place::kAnswer ? "Retention" : "SaidRetention"}, row.kind);
    text += fmt::format("{}{}: {{{}, description: {}}}\n", indent, name_in(place, row), schema,
                        quoted(description));
  }
  return text;
}

/// Replaces what is between the lines "# settings: NAME" and "# end" with that indentation.
void replace_block(std::string& yaml, std::string_view name, std::string_view indent,
                   const std::string& text) {
  const std::string begin = fmt::format("{}# settings: {}, from topic_settings.def\n", indent, name);
  const std::string end = fmt::format("{}# end\n", indent);
  const size_t from = yaml.find(begin);
  ASSERT_NE(from, std::string::npos) << begin;
  const size_t to = yaml.find(end, from);
  ASSERT_NE(to, std::string::npos) << begin;
  yaml.replace(from + begin.size(), to - from - begin.size(), text);
}

TEST(OpenApiSettings, are_those_of_the_table) {
  const std::string name = "src/api/http/openapi.yaml";
  std::ifstream in(std::string(DELAYQ_SOURCE_FOLDER) + "/" + name, std::ios::binary);
  std::string yaml{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const std::span<const Setting> rows = topic_settings().rows();
  std::vector<std::string> names;
  for (const Setting& row : rows) names.push_back(name_in(Place::kAnswer, row));
  constexpr std::string_view kInRequest = "                ";
  constexpr std::string_view kInAnswer = "        ";
  constexpr std::string_view kInLine = "            ";
  replace_block(yaml, "request", kInRequest, properties(rows, Place::kRequest, kInRequest));
  replace_block(
      yaml, "answer", kInAnswer.substr(2),
      fmt::format("{}required: [{}]\n{}properties:\n{}", kInAnswer.substr(2), fmt::join(names, ", "),
                  kInAnswer.substr(2), properties(rows, Place::kAnswer, kInAnswer)));
  replace_block(yaml, "line", kInLine, properties(rows, Place::kLine, kInLine));
  expect_committed(name, yaml);
}

// ---- one setting more

constexpr std::array<std::string_view, 2> kColours{"red", "blue"};
enum class Colour : uint8_t { kRed, kBlue };

struct MoreSettings {
#define DELAYQ_SETTING(number, type, name, ...) OwnSetting<type>::Type name{};
#include "queue/topic_settings.def"
  std::optional<uint32_t> shards{};
  std::optional<Colour> colour{};

  bool operator==(const MoreSettings&) const = default;
};

struct MoreEffectiveSettings {
#define DELAYQ_SETTING(number, type, name, initial, ...) type name = initial;
#include "queue/topic_settings.def"
  uint32_t shards = 3;
  Colour colour = Colour::kBlue;
};

SettingsTable<MoreSettings, MoreEffectiveSettings> with_more() {
  SettingsTable<MoreSettings, MoreEffectiveSettings> table;
#define DELAYQ_SETTING(number_, type, name_, initial, ...)        \
  table.add<&MoreSettings::name_, &MoreEffectiveSettings::name_>( \
      {.number = number_, .name = #name_, __VA_ARGS__});
#include "queue/topic_settings.def"
  table.add<&MoreSettings::shards, &MoreEffectiveSettings::shards>({.number = 90,
                                                                    .name = "shards",
                                                                    .kind = NumberKind{.most = 9},
                                                                    .help = "Parts of it.",
                                                                    .request = "Its parts."});
  table.add<&MoreSettings::colour, &MoreEffectiveSettings::colour>(
      {.number = 91,
       .name = "colour",
       .kind = WordKind{Words{.names = kColours}},
       .help = "Its colour.",
       .request = "The colour."});
  return table;
}

class OneMoreSetting : public testing::Test {
 protected:
  MoreSettings own() const {
    MoreSettings settings;
    settings.attempts = 5;
    settings.callback_secrets = {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"};
    settings.shards = 7;
    settings.colour = Colour::kRed;
    return settings;
  }

  const SettingsTable<MoreSettings, MoreEffectiveSettings> table_ = with_more();
};

TEST_F(OneMoreSetting, is_checked_applied_and_removed_by_name) {
  MoreSettings settings = own();
  EXPECT_TRUE(table_.check(settings).ok());
  settings.shards = 10;
  EXPECT_EQ(table_.check(settings).error().detail, "shards 10 is out of range: 0 to 9 is allowed");
  EXPECT_EQ(table_.check(settings).error().field, "shards");

  MoreEffectiveSettings effective;
  table_.apply(own(), effective);
  EXPECT_EQ(effective.shards, 7U);
  EXPECT_EQ(effective.colour, Colour::kRed);
  MoreSettings above;
  above.shards = 1;
  settings = table_.overlay(own(), above);
  EXPECT_EQ(settings.shards, 1U);
  EXPECT_EQ(settings.attempts, 5U);
  EXPECT_TRUE(table_.unset(settings, "shards").ok());
  EXPECT_EQ(settings.shards, std::nullopt);
  EXPECT_THAT(table_.unset(settings, "shard").error().detail, HasSubstr("did you mean shards?"));
}

TEST_F(OneMoreSetting, is_stored_and_older_programs_skip_it) {
  const std::string bytes = table_.encode(own());
  EXPECT_EQ(table_.decode(bytes).value(), own());
  EXPECT_EQ(decode_settings(bytes).value().attempts, 5U);
}

TEST_F(OneMoreSetting, is_read_and_written_by_http) {
  Result<http::Fields> fields = http::Fields::of_json(R"({"shards":4,"colour":"red"})");
  ASSERT_TRUE(fields.ok());
  const MoreSettings read = table_.own(http::read_settings(*fields, table_.rows()));
  EXPECT_TRUE(fields->finish().ok());
  EXPECT_EQ(read.shards, 4U);
  EXPECT_EQ(read.colour, Colour::kRed);

  MoreEffectiveSettings effective;
  table_.apply(own(), effective);
  std::string text;
  json::Writer json(text);
  json.begin_object();
  transfer::write_settings(json, table_.effective_values(effective), transfer::SecretCounts::kShown);
  json.end_object();
  EXPECT_THAT(text, HasSubstr(R"("callback_secret_count":1)"));
  EXPECT_THAT(text, HasSubstr(R"("shards":7,"colour":"red"})"));
}

TEST_F(OneMoreSetting, is_exported_and_imported_and_secrets_are_not) {
  std::string text;
  json::Writer json(text);
  json.begin_object();
  transfer::write_settings(json, table_.values(own()), transfer::SecretCounts::kLeftOut);
  json.end_object();
  EXPECT_EQ(text, R"({"attempts":5,"shards":7,"colour":"red"})");
  const Result<SettingValues> read = transfer::read_settings(json::parse(text).value(), table_.rows());
  ASSERT_TRUE(read.ok());
  MoreSettings expected = own();
  expected.callback_secrets.reset();
  EXPECT_EQ(table_.own(*read), expected);
}

TEST_F(OneMoreSetting, is_a_key_of_the_configuration_file) {
  const std::vector<ConfigRow> rows = topic_rows(table_.effective_values({}));
  const ConfigRow& shards = rows[rows.size() - 2];
  const ConfigRow& colour = rows.back();
  EXPECT_EQ(shards.key, "shards");
  EXPECT_EQ(shards.initial, "3");
  EXPECT_EQ(describe(shards.field), "a number, 0 to 9");
  EXPECT_EQ(colour.initial, "\"blue\"");
  EXPECT_EQ(colour.help, "Its colour.");

  Config config;
  SettingValues values = table_.values({});
  FieldTarget target{config, &values};
  EXPECT_TRUE(read_field(shards.field, {Given::Kind::kNumber, "8", {}}, target).ok());
  EXPECT_TRUE(read_field(colour.field, {Given::Kind::kText, "red", {}}, target).ok());
  EXPECT_FALSE(read_field(shards.field, {Given::Kind::kNumber, "10", {}}, target).ok());
  EXPECT_EQ(table_.own(values).shards, 8U);
  EXPECT_EQ(table_.own(values).colour, Colour::kRed);
}

TEST_F(OneMoreSetting, is_in_openapi) {
  EXPECT_THAT(
      properties(table_.rows(), Place::kRequest, ""),
      HasSubstr("shards: {type: [integer, 'null'], minimum: 0, maximum: 9, description: 'Its parts.'}\n"
                "colour: {type: [string, 'null'], enum: [red, blue, null], description: 'The colour.'}\n"));
  EXPECT_THAT(properties(table_.rows(), Place::kAnswer, ""),
              HasSubstr("shards: {$ref: '#/components/schemas/Count', description: 'Its parts.'}\n"));
  EXPECT_THAT(properties(table_.rows(), Place::kLine, ""), Not(HasSubstr("secret_count")));
}

TEST(TopicSettings, have_numbers_of_their_own) {
  std::vector<uint64_t> numbers;
  for (const Setting& row : topic_settings().rows()) {
    numbers.push_back(row.number);
    if (const auto* keep = std::get_if<RetentionKind>(&row.kind)) {
      numbers.push_back(keep->time_number);
      numbers.push_back(keep->count_number);
    }
  }
  std::sort(numbers.begin(), numbers.end());
  EXPECT_EQ(std::adjacent_find(numbers.begin(), numbers.end()), numbers.end());
}

}  // namespace
}  // namespace delayq
