#include "app/config_options.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temporary_directory.h"

namespace delayq {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A variable of the environment, for as long as this is there.
class [[nodiscard]] Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

class ReadConfig : public testing::Test {
 protected:
  void write(const std::string& text) {
    options.file = folder / "delayq.toml";
    std::ofstream(options.file, std::ios::binary) << text;
  }

  support::TemporaryDirectory folder;
  ConfigOptions options;
};

TEST_F(ReadConfig, tls_needs_both_files) {
  write("[tls]\ncertificate = \"c.pem\"\n");
  EXPECT_THAT(read_config(options).errors,
              ElementsAre(HasSubstr("tls: certificate and key are needed together")));
  write("[tls]\nclient_ca = \"c.pem\"\n");
  EXPECT_THAT(read_config(options).errors, ElementsAre(HasSubstr("tls.client_ca: needs")));
}

TEST_F(ReadConfig, tls_files_may_be_named_in_different_places) {
  write("[tls]\ncertificate = \"c.pem\"\n");
  {
    const Variable key("DELAYQ_TLS_KEY", "k.pem");
    const ConfigOutcome outcome = read_config(options);
    EXPECT_THAT(outcome.errors, IsEmpty());
    EXPECT_EQ(outcome.config.tls.certificate, "c.pem");
    EXPECT_EQ(outcome.config.tls.key, "k.pem");
  }
  options.assignments = {"tls.key=other.pem"};
  EXPECT_THAT(read_config(options).errors, IsEmpty());
}

TEST_F(ReadConfig, asks_for_tokens_where_other_machines_come) {
  options.assignments = {"server.http=0.0.0.0:9277"};
  EXPECT_THAT(read_config(options).errors,
              ElementsAre(HasSubstr("server.http: 0.0.0.0:9277 can be reached from other machines")));
  options.assignments.emplace_back("server.allow_anonymous=true");
  EXPECT_THAT(read_config(options).errors, IsEmpty());
}

TEST_F(ReadConfig, a_mistyped_variable_is_told) {
  const Variable mistyped("DELAYQ_SERVER_HTPP", "127.0.0.1:1");
  EXPECT_THAT(
      read_config(options).errors,
      ElementsAre(
          "DELAYQ_SERVER_HTPP in the environment is not a setting; did you mean DELAYQ_SERVER_HTTP?"));
}

TEST_F(ReadConfig, the_file_of_delayq_is_searched_for) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  EXPECT_EQ(read_config(options).file, "");
  std::filesystem::create_directory("conf");
  std::ofstream("conf/delayq.conf") << "[delayq]\naccess_log = logs/access.log\n";
  const ConfigOutcome outcome = read_config(options);
  EXPECT_EQ(outcome.file, "conf/delayq.conf");
  EXPECT_EQ(outcome.config.log.access, "logs/access.log");
  EXPECT_THAT(outcome.warnings, ElementsAre(HasSubstr("reading conf/delayq.conf: it exists")));
  write("[server]\n");
  EXPECT_EQ(read_config(options).config.log.access, "") << "-c names another";
  std::filesystem::current_path(before);
}

TEST_F(ReadConfig, networks_that_are_none_are_told_before_anything_starts) {
  write("[webhook]\ndeny = [\"10.0.0.0/8\", \"10.0.0.0/40\"]\n");
  EXPECT_THAT(read_config(options).errors, ElementsAre(HasSubstr("webhook.deny: \"10.0.0.0/40\"")));
}

TEST_F(ReadConfig, tells_everything_at_once) {
  write("[server]\ngrace = \"soon\"\n");
  const Variable days("DELAYQ_LOG_KEEP_DAYS", "many");
  options.assignments = {"server.http=0.0.0.0:1", "log.level"};
  EXPECT_THAT(read_config(options).errors, ElementsAre(HasSubstr(":2: server.grace: "),
                                                       HasSubstr("DELAYQ_LOG_KEEP_DAYS in the environment"),
                                                       HasSubstr("--set log.level: expected KEY=VALUE"),
                                                       HasSubstr("server.http: 0.0.0.0:1 can be reached")));
}

}  // namespace
}  // namespace delayq
