#include <sstream>

#include <gmock/gmock.h>

#include "cli/importing.h"
#include "tests/support/fake_place.h"

namespace delayq::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// A world with one data directory, ./data, which says "+OK" to everything but WRONG.
class Places : public testing::Test {
 protected:
  Places() {
    world_.open_storage = [this](const Surroundings::StorageName& name) -> Result<Surroundings::Storage> {
      if (name.place != "./data") return Error{ErrorCode::kNotFound, {}, "there is no directory"};
      return Surroundings::Storage{
          [this](std::span<const Words> commands) -> Result<std::vector<resp::Value>> {
            batches_.push_back(commands.size());
            std::vector<resp::Value> replies(commands.size());
            for (size_t i = 0; i < commands.size(); ++i) {
              const bool is_wrong = commands[i][0] == "WRONG";
              replies[i].type = is_wrong ? resp::Value::Type::kError : resp::Value::Type::kSimple;
              replies[i].text = is_wrong ? "INVALID no" : "OK";
            }
            return replies;
          }};
    };
  }

  std::istringstream in_;
  std::ostringstream out_;
  Surroundings world_{.in = in_,
                      .out = out_,
                      .err = out_,
                      .now = [] { return Moment{}; },
                      .variable = [](const char*) -> const char* { return nullptr; }};
  std::vector<size_t> batches_;
};

TEST_F(Places, ADirectoryIsAskedForManyThingsAtOnce) {
  const Result<Place> place = open_place(world_, "--from", "./data");
  ASSERT_TRUE(place);
  EXPECT_TRUE(place->is_exclusive);
  const std::vector<Words> commands{{"CANCEL", "t", "1"}, {"WRONG"}, {"CANCEL", "t", "2"}};
  const auto replies = place->ask_all(commands);
  ASSERT_TRUE(replies);
  EXPECT_THAT(batches_, ElementsAre(3)) << "each by itself would wait for the disk by itself";
  EXPECT_EQ((*replies)[0].text, "OK");
  EXPECT_TRUE((*replies)[1].is_error()) << "one that fails leaves the others alone";
  EXPECT_EQ(place->ask({"WRONG"}).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(place->ask({"RIGHT"})->text, "OK");
}

TEST_F(Places, WhatIsOpenedIsToldWhoNamedItAndWhetherToWrite) {
  std::vector<Surroundings::StorageName> names;
  world_.open_storage = [&names](const Surroundings::StorageName& name) -> Result<Surroundings::Storage> {
    names.push_back(name);
    if (names.size() > 2) return Error{ErrorCode::kUnavailable, {}, "cannot be reached"};
    return Surroundings::Storage{{}, true, 16};
  };
  const Result<Place> place =
      open_place(world_, "--from", "redis://:hush@x:1?prefix=a", Surroundings::Access::kLook);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->name, "redis://x:1?prefix=a");
  EXPECT_TRUE(place->is_new);
  EXPECT_EQ(place->shards, 16U);
  ASSERT_TRUE(open_place(world_, "--to", "./x"));
  EXPECT_EQ(open_place(world_, "--to", "redis://x:1").error().detail, "--to: cannot be reached");
  EXPECT_EQ(names[0].place, "redis://:hush@x:1?prefix=a");
  EXPECT_EQ(names[0].option, "--from");
  EXPECT_EQ(names[0].access, Surroundings::Access::kLook);
  EXPECT_EQ(names[1].option, "--to");
  EXPECT_EQ(names[1].access, Surroundings::Access::kMake);
}

TEST_F(Places, AnErrorNamesTheOptionAndThePlaceOnce) {
  Place place;
  place.name = "127.0.0.1:1";
  EXPECT_EQ(in_place(place, {ErrorCode::kUnavailable, {}, "gone"}).detail, "127.0.0.1:1: gone");
  place.option = "--from";
  EXPECT_EQ(in_place(place, {ErrorCode::kUnavailable, {}, "gone"}).detail, "--from: 127.0.0.1:1: gone");
  EXPECT_EQ(in_place(place, {ErrorCode::kUnavailable, {}, "could not connect to 127.0.0.1:1"}).detail,
            "--from: could not connect to 127.0.0.1:1");
}

TEST_F(Places, AnErrorSpeaksOfUrlsAndNotOfOptionsThatThereAreNone) {
  Place place;
  place.name = "x:1";
  for (const char* detail :
       {"could not connect to x:1: it does not speak TLS there; leave --tls out, or name the port that does",
        "x:1 closed. If it speaks TLS there, use --tls",
        "x:1 refuses the token (--token, $DELAYQ_TOKEN): WRONGPASS"}) {
    const std::string said = in_place(place, {ErrorCode::kUnavailable, {}, detail}).detail;
    EXPECT_THAT(said, HasSubstr("delayq"));
    EXPECT_THAT(said, HasSubstr("://"));
    EXPECT_THAT(said, Not(HasSubstr("--t")));
  }
}

TEST_F(Places, WhoHasNoTokenIsToldWhereItStands) {
  Place place;
  place.name = "x:1";
  const Error error = in_place(place, {ErrorCode::kUnauthorized, {}, "a valid token is needed"});
  EXPECT_EQ(error.detail, "x:1: a valid token is needed; use delayq://TOKEN@HOST:PORT to authenticate");
  EXPECT_FALSE(error.op.empty()) << "nobody adds to it";
}

TEST_F(Places, AnotherProgramThanAServerIsToldAsSuch) {
  Place place;
  place.name = "127.0.0.1:1";
  place.option = "--to";
  const std::string redis =
      in_place(place, {ErrorCode::kInvalid, {}, "unknown command 'TOPICS', with args beginning with: "})
          .detail;
  EXPECT_THAT(redis, HasSubstr("--to: 127.0.0.1:1 is no delayq but a Redis"));
  EXPECT_THAT(redis, HasSubstr("redis://127.0.0.1:1"));
  EXPECT_THAT(
      in_place(place, {ErrorCode::kUnavailable, {}, "127.0.0.1:1 does not speak RESP: unknown type \"H\""})
          .detail,
      HasSubstr("9278 unless server.resp says otherwise"));
}

TEST_F(Places, ADirectoryWithoutASlashIsToldHowToWriteIt) {
  EXPECT_THAT(open_place(world_, "--to", "data").error().detail, HasSubstr("./data"));
}

TEST_F(Places, WhatIsNoneIsToldWithoutSecrets) {
  EXPECT_EQ(open_place(world_, "--to", "./other").error().code, ErrorCode::kNotFound);
  for (const char* text : {"data", "http://hush@x:1", "kafka://hush@x"}) {
    const Result<Place> place = open_place(world_, "--to", text);
    ASSERT_FALSE(place) << text;
    EXPECT_THAT(place.error().detail, HasSubstr("--to: "));
    EXPECT_THAT(place.error().detail, Not(HasSubstr("hush")));
  }
}

TEST_F(Places, WhatIsThereIsLookedUpInBatches) {
  std::vector<size_t> sizes;
  const AskAll ask = [&sizes](std::span<const Words> commands) -> Result<std::vector<resp::Value>> {
    sizes.push_back(commands.size());
    std::vector<resp::Value> replies;
    for (const Words& command : commands) {
      resp::Value reply{.type = resp::Value::Type::kArray, .text = {}, .items = {}};
      for (const std::string& text : {std::string("body"), "body of " + command[2]})
        reply.items.push_back({.type = resp::Value::Type::kBulk, .text = text, .items = {}});
      replies.push_back(command[2] == "gone" ? resp::Value{} : std::move(reply));
    }
    return replies;
  };
  std::vector<std::string> ids{"gone", "other"};
  for (int i = 0; i < 300; ++i) ids.push_back(std::to_string(i));
  std::vector<std::string> bodies;
  for (const std::string& id : ids) bodies.push_back(id == "other" ? "mine" : "body of " + id);
  std::vector<Known> jobs;
  for (size_t i = 0; i < ids.size(); ++i) jobs.push_back({"t", ids[i], bodies[i]});
  const Result<std::vector<bool>> there = are_there(ask, jobs);
  ASSERT_TRUE(there);
  EXPECT_THAT(sizes, ElementsAre(256, 46));
  std::vector<bool> expected(ids.size(), true);
  expected[0] = expected[1] = false;
  EXPECT_EQ(*there, expected);
}

TEST(PlacesApart, AreToldFromOneThatHasTwoNames) {
  FakePlace one("one");
  FakePlace other("other");
  one.jobs[{"t", "a"}] = {"delayed", "x"};
  EXPECT_TRUE(check_apart(one.place(), other.place(), "t"));
  EXPECT_EQ(other.jobs.size(), 0U) << "it leaves nothing behind";
  Place again = one.place();
  again.name = "again";
  const Status status = check_apart(one.place(), again, "t");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().detail, "--to: again has the same jobs as one: it is the same place");
  EXPECT_EQ(one.jobs.size(), 1U);
  other.dies_at = other.asked + 1;
  EXPECT_EQ(check_apart(one.place(), other.place(), "t").error().detail, "other: gone");
  EXPECT_EQ(check_apart(other.place(), one.place(), "t").error().detail, "other: gone");
  EXPECT_EQ(one.jobs.size(), 1U) << "nor then";
}

}  // namespace
}  // namespace delayq::cli
