#include <map>

#include <gtest/gtest.h>

#include "cli/cli.h"

namespace delayq::cli {
namespace {

Result<Server> server(const ServerOptions& options,
                      const std::map<std::string, std::string>& environment = {}) {
  return server_of(options, [&](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

/// Options of which one is given.
template <class Value>
ServerOptions given(Value ServerOptions::*option, Value value) {
  ServerOptions options;
  options.*option = std::move(value);
  return options;
}
ServerOptions given(std::string ServerOptions::*option, const char* value) {
  return given(option, std::string(value));
}

TEST(CliServer, prefers_options_to_the_environment) {
  EXPECT_EQ(to_string(server({})->address), "127.0.0.1:9278");
  EXPECT_EQ(to_string(server({}, {{"DELAYQ_RESP", "b:2"}})->address), "b:2");
  EXPECT_EQ(to_string(server(given(&ServerOptions::address, "a:1"), {{"DELAYQ_RESP", "b:2"}})->address),
            "a:1");
  EXPECT_EQ(server({}, {{"DELAYQ_TOKEN", "x"}})->token, "x");
  EXPECT_EQ(server(given(&ServerOptions::token, "y"), {{"DELAYQ_TOKEN", "x"}})->token, "y");
  EXPECT_EQ(server(given(&ServerOptions::address, "no where:1")).error().code, ErrorCode::kInvalid);
}

TEST(CliServer, has_a_default_port_and_the_schemes_of_redis) {
  const auto named = [](const char* text) { return server(given(&ServerOptions::address, text)); };
  EXPECT_EQ(to_string(named("queue.example")->address), "queue.example:9278");
  EXPECT_EQ(to_string(named("[::1]")->address), "[::1]:9278");
  EXPECT_EQ(to_string(named("redis://a:1/")->address), "a:1");
  EXPECT_FALSE(named("redis://a:1")->tls);
  EXPECT_TRUE(named("rediss://a:1")->tls);
}

TEST(CliServer, an_address_of_http_is_answered_with_the_right_port) {
  const auto told = [](const char* text) {
    return server(given(&ServerOptions::address, text)).error().detail;
  };
  EXPECT_TRUE(told("http://a:9277").ends_with("--server a:9278")) << told("http://a:9277");
  EXPECT_TRUE(told("http://a/v1/jobs").ends_with("--server a:9278")) << told("http://a/v1/jobs");
  EXPECT_TRUE(told("https://[::1]:443").ends_with("--server [::1]:9278 --tls")) << told("https://[::1]:443");
  EXPECT_TRUE(told("ftp://a:1").starts_with("--server: ")) << told("ftp://a:1");
}

TEST(CliServer, any_option_of_tls_means_tls) {
  EXPECT_FALSE(server({})->tls);
  EXPECT_TRUE(server(given(&ServerOptions::tls, true))->tls->verify);
  EXPECT_FALSE(server(given(&ServerOptions::insecure, true))->tls->verify);
  EXPECT_EQ(server({}, {{"DELAYQ_CA", "ca.pem"}})->tls->ca, "ca.pem");
  EXPECT_EQ(server(given(&ServerOptions::certificate, "both.pem"))->tls->key, "both.pem");
  ServerOptions both = given(&ServerOptions::certificate, "c.pem");
  both.key = "k.pem";
  EXPECT_EQ(server(both)->tls->key, "k.pem");
}

}  // namespace
}  // namespace delayq::cli
