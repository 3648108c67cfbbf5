#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/commands.h"
#include "core/token.h"
#include "ops/config.h"

namespace delayq {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

/// The bytes 0 to 31, so that the secret and its hash are known: `printf %s "$secret" | sha256sum`.
std::string counted() {
  std::string bytes;
  for (char c = 0; c < 32; ++c) bytes += c;
  return bytes;
}

TEST(TokenCommand, writes_the_secret_and_its_hash) {
  const Result<NewToken> token =
      make_token({.name = "shop", .scopes = {"push", "consume"}, .topics = {"order", "order.*"}}, counted());
  ASSERT_TRUE(token);
  EXPECT_EQ(token->secret, "dq_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8");
  EXPECT_EQ(token->toml,
            "[[tokens]]\n"
            "name = \"shop\"\n"
            "sha256 = \"4347733677b00eb1a03f3fa9bd3ad33b27adbcd30576c01de853512aa82630ed\"\n"
            "scopes = [\"push\", \"consume\"]\n"
            "topics = [\"order\", \"order.*\"]\n");
}

TEST(TokenCommand, the_server_understands_it) {
  const Result<NewToken> token =
      make_token({.name = "shop", .scopes = {"read", "admin"}, .topics = {"order.*"}}, counted());
  ASSERT_TRUE(token);
  const ConfigOutcome outcome = parse_config(token->toml, "file");
  EXPECT_THAT(outcome.errors, testing::IsEmpty());
  ASSERT_EQ(outcome.config.tokens.size(), 1u);
  EXPECT_EQ(outcome.config.tokens[0].name, "shop");
  EXPECT_EQ(outcome.config.tokens[0].scopes, Scope::kRead | Scope::kAdmin);
  EXPECT_THAT(outcome.config.tokens[0].topics, testing::ElementsAre("order.*"));
}

TEST(TokenCommand, secrets_can_stand_in_a_shell_word) {
  const Result<NewToken> token = make_token({}, std::string(32, '\xff'));
  ASSERT_TRUE(token);
  EXPECT_THAT(token->secret, MatchesRegex("dq_[-_0-9A-Za-z]{43}"));
  EXPECT_THAT(token->toml, testing::Not(HasSubstr(token->secret)));
}

TEST(TokenCommand, refuses_what_the_server_would) {
  EXPECT_THAT(make_token({.scopes = {"pull"}}, counted()).error().detail, HasSubstr("none of push, consume"));
  EXPECT_THAT(make_token({.name = "a\"b"}, counted()).error().detail, HasSubstr("--name"));
  EXPECT_THAT(make_token({.name = ""}, counted()).error().detail, HasSubstr("--name"));
  EXPECT_TRUE(make_token({.name = std::string(kTokenNameBytes, 'n')}, counted()));
  EXPECT_THAT(make_token({.name = std::string(kTokenNameBytes + 1, 'n')}, counted()).error().detail,
              HasSubstr("1 to 100 printable bytes"));
  EXPECT_THAT(make_token({.topics = {""}}, counted()).error().detail, HasSubstr("--topics"));
  EXPECT_THAT(make_token({.topics = {}}, counted()).error().detail, HasSubstr("--topics"));
}

}  // namespace
}  // namespace delayq
