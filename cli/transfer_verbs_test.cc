// export, import and backup without a server: what they would send, and what they make of an answer.
#include <filesystem>
#include <fstream>
#include <sstream>

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>

#include "cli/cli.h"
#include "cli/importing.h"
#include "cli/verb.h"
#include "tests/support/fake_place.h"
#include "tests/support/temporary_directory.h"

namespace delayq::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class TransferVerbsTest : public testing::Test {
 protected:
  Status run(const std::vector<std::string>& arguments) {
    Verbs verbs;
    add_transfer_verbs(verbs);
    CLI::App app;
    Verb* verb = nullptr;
    for (auto& each : verbs) {
      CLI::App* const sub = app.add_subcommand(std::string(each->name()));
      each->add_options(*sub);
      sub->callback([&verb, &each] { verb = each.get(); });
    }
    parse(app, arguments);
    Surroundings world{.in = in_,
                       .out = out_,
                       .err = err_,
                       .err_is_terminal = err_is_terminal_,
                       .now = [] { return from_unix_ms(1'896'076'800'000); },
                       .variable = [](const char*) -> const char* { return nullptr; }};
    world.open_storage = [this](const Surroundings::StorageName& name) -> Result<Surroundings::Storage> {
      if (name.place != "data") return Error{ErrorCode::kUnavailable, {}, "in use", {}};
      return Surroundings::Storage{[this](std::span<const Words> commands) { return answers(commands); }};
    };
    return verb->run(
        {.transport = [this](const Words& command, Millis) { return answer(command); },
         .world = world,
         .json = true,
         .batch_transport = [this](std::span<const Words> commands) { return answers(commands); }});
  }

  Result<std::vector<resp::Value>> answers(std::span<const Words> commands) {
    batches_.push_back(commands.size());
    return answer_each(commands, [this](const Words& command) { return answer(command); });
  }

  Result<resp::Value> answer(const Words& command) {
    sent_.push_back(command);
    std::string_view rest = replies_;
    auto value = resp::take_reply(rest);
    if (!value || !*value) return Error{ErrorCode::kUnavailable, {}, "the connection broke", {}};
    replies_ = std::string(rest);
    return std::move(**value);
  }

  std::string file(const std::string& name, const std::string& text) {
    std::string path = folder_ / name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  static std::string read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  const std::string stats_ = "*2\r\n$7\r\ndelayed\r\n:2\r\n";
  support::TemporaryDirectory folder_;
  std::istringstream in_;
  std::ostringstream out_, err_;
  bool err_is_terminal_ = false;
  std::string replies_;
  std::vector<Words> sent_;
  std::vector<size_t> batches_;  ///< commands that were sent together
};

TEST_F(TransferVerbsTest, export_walks_all_pages) {
  replies_ =
      stats_ + "*2\r\n$2\r\nab\r\n*1\r\n$2\r\n{}\r\n" + "*2\r\n$0\r\n\r\n*2\r\n$2\r\n[]\r\n$1\r\n1\r\n";
  ASSERT_TRUE(run({"export"}));
  EXPECT_EQ(out_.str(), "{}\n[]\n1\n");
  EXPECT_EQ(err_.str(), "3 lines\n");
  EXPECT_THAT(sent_, ElementsAre(ElementsAre("STATS"), ElementsAre("EXPORT", "COUNT", "1000"),
                                 ElementsAre("EXPORT", "COUNT", "1000", "CURSOR", "ab")));
}

TEST_F(TransferVerbsTest, export_of_a_part_into_a_file) {
  replies_ = stats_ + "*2\r\n$0\r\n\r\n*1\r\n$2\r\n{}\r\n";
  const std::string path = folder_ / "out";
  ASSERT_TRUE(run({"export", path, "--topic", "t", "--state", "dead"}));
  EXPECT_EQ(read(path), "{}\n");
  EXPECT_EQ(out_.str(), "{\"lines\":1}\n");
  EXPECT_THAT(sent_[1], ElementsAre("EXPORT", "COUNT", "1000", "TOPIC", "t", "STATE", "dead"));
}

TEST_F(TransferVerbsTest, an_export_that_fails_leaves_no_file) {
  replies_ = stats_ + "*2\r\n$2\r\nab\r\n*1\r\n$2\r\n{}\r\n";
  const std::string path = file("out", "old");
  EXPECT_FALSE(run({"export", path}));
  EXPECT_EQ(read(path), "old");
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
  replies_ = stats_;
  EXPECT_FALSE(run({"export", folder_ / "no" / "such" / "place"}));
}

TEST_F(TransferVerbsTest, import_sends_lines_and_counts_answers) {
  replies_ = "*3\r\n+created\r\n+kept\r\n+dropped\r\n";
  const std::string path = file("in", "{1}\n\n  \n{2}\r\n{3}");
  ASSERT_TRUE(run({"import", path}));
  EXPECT_THAT(sent_, ElementsAre(ElementsAre("IMPORT", "KEEP", "{1}", "{2}", "{3}")));
  EXPECT_EQ(out_.str(), "{\"lines\":3,\"created\":1,\"replaced\":0,\"kept\":1,\"dropped\":1,\"failed\":0}\n");
}

TEST_F(TransferVerbsTest, import_tells_file_and_line_of_each_problem) {
  replies_ = "*2\r\n+replaced\r\n-INVALID state: is missing\r\n*1\r\n-CONFLICT it is there\r\n";
  in_.str("c\n");
  const Status status = run({"import", file("one", "a\n\nb\n"), "-", "--on-conflict", "replace"});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(status.error().detail, HasSubstr("2 of 3 lines"));
  EXPECT_THAT(err_.str(), HasSubstr("one:3: state: is missing"));
  EXPECT_THAT(err_.str(), HasSubstr("standard input:1: it is there"));
  EXPECT_EQ(sent_[0][1], "REPLACE");
}

TEST_F(TransferVerbsTest, large_imports_go_in_pieces) {
  std::string text;
  for (int i = 0; i < 2'500; ++i) text += "x\n";
  for (const int size : {1'000, 1'000, 500}) {
    replies_ += "*" + std::to_string(size) + "\r\n";
    for (int i = 0; i < size; ++i) replies_ += "+kept\r\n";
  }
  ASSERT_TRUE(run({"import", file("in", text), "--on-conflict", "reject"}));
  EXPECT_EQ(sent_.size(), 3U);
  EXPECT_EQ(sent_[2].size(), 501U);
  EXPECT_THAT(batches_, ElementsAre(3)) << "none waits for the one before";
}

TEST_F(TransferVerbsTest, no_more_than_a_few_pieces_are_under_way) {
  std::string text;
  for (int i = 0; i < 5'000; ++i) text += "x\n";
  for (int piece = 0; piece < 5; ++piece) {
    replies_ += "*1000\r\n";
    for (int i = 0; i < 1'000; ++i) replies_ += "+created\r\n";
  }
  ASSERT_TRUE(run({"import", file("in", text)}));
  EXPECT_THAT(batches_, ElementsAre(4, 1));
  EXPECT_THAT(out_.str(), HasSubstr("\"lines\":5000,\"created\":5000,"));
}

TEST_F(TransferVerbsTest, pieces_behind_a_refused_one_are_counted) {
  std::string text;
  for (int i = 0; i < 2'001; ++i) text += "x\n";
  replies_ = "*1000\r\n";
  for (int i = 0; i < 1'000; ++i) replies_ += "+created\r\n";
  replies_ += "-OVERLOADED the disk is full\r\n*1\r\n+created\r\n";
  const Status status = run({"import", file("in", text)});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kOverloaded);
  EXPECT_THAT(status.error().detail, HasSubstr("in:1001 and what follows"));
  EXPECT_THAT(out_.str(), HasSubstr("\"lines\":1001,\"created\":1001,"));
}

TEST_F(TransferVerbsTest, an_import_that_breaks_off_says_where) {
  const Status status = run({"import", file("in", "a\nb\n")});
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().detail, HasSubstr("in:1 and what follows"));
  EXPECT_EQ(run({"import", folder_ / "nothing"}).error().code, ErrorCode::kNotFound);
}

TEST_F(TransferVerbsTest, a_directory_instead_of_a_server) {
  replies_ = stats_ + "*2\r\n$0\r\n\r\n*0\r\n";
  EXPECT_TRUE(run({"export", "--data", "data"}));
  replies_ = "-INVALID count\r\n";
  EXPECT_EQ(run({"export", "--data", "data"}).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(run({"export", "--data", "held"}).error().code, ErrorCode::kUnavailable);
}

TEST_F(TransferVerbsTest, a_terminal_sees_how_far_it_is) {
  err_is_terminal_ = true;
  replies_ = stats_ + "*2\r\n$0\r\n\r\n*1\r\n$2\r\n{}\r\n";
  ASSERT_TRUE(run({"export"}));
  EXPECT_THAT(err_.str(), HasSubstr("exporting ["));
}

TEST_F(TransferVerbsTest, backup_tells_what_was_made) {
  replies_ = "*4\r\n$4\r\npath\r\n$4\r\n/b/a\r\n$5\r\nbytes\r\n:17\r\n";
  ASSERT_TRUE(run({"backup", "a"}));
  EXPECT_THAT(sent_, ElementsAre(ElementsAre("BACKUP", "a")));
  EXPECT_THAT(out_.str(), HasSubstr("\"path\":\"/b/a\""));
}

TEST(LineReader, EndsAndLengths) {
  std::istringstream in("a\r\n\nlong line\nb");
  LineReader reader(in, 8);
  std::string line;
  EXPECT_TRUE(*reader.next(line));
  EXPECT_EQ(line, "a");
  EXPECT_TRUE(*reader.next(line));
  EXPECT_EQ(line, "");
  EXPECT_EQ(reader.number(), 2U);
  EXPECT_EQ(reader.bytes(), 4U);
  EXPECT_EQ(reader.next(line).error().code, ErrorCode::kTooLarge);
  EXPECT_EQ(reader.number(), 3U);
  std::istringstream last("b");
  LineReader end(last);
  EXPECT_TRUE(*end.next(line));
  EXPECT_EQ(line, "b");
  EXPECT_FALSE(*end.next(line));
}

TEST_F(TransferVerbsTest, what_is_only_for_another_system_is_refused_with_a_file) {
  const std::string lines = file("lines", R"({"topic":"t","id":"1","state":"delayed"})"
                                          "\n");
  for (const char* option : {"--dry-run", "--yes", "--remove", "--buckets=3"}) {
    const Status status = run({"import", option, lines});
    ASSERT_FALSE(status) << option;
    EXPECT_EQ(status.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(status.error().detail, testing::HasSubstr("goes only with --from"));
  }
  EXPECT_TRUE(sent_.empty()) << "above all a dry run";
  const Status status =
      run({"import", "--from", "callback", "--on-conflict", "replace", "redis://127.0.0.1:1"});
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().detail, testing::HasSubstr("--on-conflict: goes not with --from"));
}

}  // namespace
}  // namespace delayq::cli
