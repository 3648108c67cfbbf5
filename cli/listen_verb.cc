#include <array>
#include <ostream>
#include <strings.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/child.h"
#include "cli/receiver.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "core/moment.h"
#include "core/text.h"
#include "json/writer.h"

namespace delayq::cli {

namespace {

constexpr std::string_view kOurHeaders = "delayq-";
constexpr size_t kShownBody = 200;
constexpr size_t kShownText = 300;

bool is_ours(std::string_view name) {
  return name.size() > kOurHeaders.size() &&
         ::strncasecmp(name.data(), kOurHeaders.data(), kOurHeaders.size()) == 0;
}

}  // namespace

std::string call_for_people(const ReceivedRequest& request, signing::Verdict verdict, Moment now) {
  const std::string time = format_moment(now);  // 2030-01-31T08:00:00.000Z
  std::string line = fmt::format("{} {} {}", time.substr(time.find('T') + 1, 12),
                                 printable(request.method, 20), printable(request.target, kShownText));
  std::string about;
  for (const auto& [name, value] : request.headers) {
    if (!is_ours(name)) continue;
    about += fmt::format(" {}={}", printable(lowered(name.substr(kOurHeaders.size())), 40),
                         printable(value, kShownText));
  }
  if (!about.empty()) line += " " + about;
  line += fmt::format("  {}", signing::name_of(verdict));
  if (!request.body.empty()) line += "  " + printable(request.body, kShownBody);
  return line;
}

std::string call_for_programs(const ReceivedRequest& request, signing::Verdict verdict, Moment now) {
  std::string line;
  json::Writer json(line);
  json.begin_object();
  json.key("at").text(format_moment(now));
  json.key("method").text(request.method);
  json.key("path").text(request.target);
  json.key("verdict").text(signing::name_of(verdict));
  json.key("headers").begin_object();
  for (const auto& [name, value] : request.headers) json.key(lowered(name)).text(value);
  json.end_object();
  json.bytes("body", request.body);
  json.end_object();
  return line;
}

// listen: a receiver of callbacks, for trying things out.

namespace {

class Listen final : public Verb {
 public:
  std::string_view name() const override { return "listen"; }
  std::string_view help() const override {
    return "Receive callbacks, check their signatures and print them";
  }
  bool is_client() const override { return false; }

  void add_options(CLI::App& app) override {
    app.add_option("--port", address_.port, "The port to listen on; default any free port, which is printed");
    app.add_option("--host", address_.host, "The address to listen on; default 127.0.0.1");
    app.add_option(
        "--secret", secrets_,
        "whsec_...: check signatures with it, and answer 401 to what is not signed with it; may be "
        "given several times");
    app.add_option("--answer", status_, "The status to answer with; default 200")
        ->check(CLI::Range(200, 599));
    app.add_option("--body", body_, "The body to answer with; default ok");
    app.add_flag("--json", json_, "A line of JSON for each call, also on a terminal");
    app.add_flag("--quiet", quiet_, "Only count them");
  }

  Status run(const Session& session) override {
    auto signer = signing::Signer::create(secrets_);
    if (!signer) return Error{signer.error().code, {}, "--secret: " + signer.error().detail};
    signing::Verifier verifier(std::move(*signer));
    Result<Receiver> receiver = Receiver::open(address_);
    if (!receiver) return receiver.error();
    const std::string answer = http_answer(status_, body_);
    const std::string refusal = http_answer(401, "the signature is missing or wrong");
    const SignalReader signals;
    const Address bound{address_.host, receiver->port()};
    session.world.err << fmt::format("listening on http://{}\n", to_string(bound)) << std::flush;
    is_json_ = json_ || !session.world.out_is_terminal;
    Status status = receiver->run(
        signals.descriptor(),
        [&](const ReceivedRequest& request) -> std::string_view {
          return receive(session, verifier, request) ? answer : refusal;
        },
        [&] { session.world.out.flush(); });
    session.world.err << totals() << "\n";
    return status;
  }

 private:
  /// Shows the call. Returns whether it is answered as a success.
  bool receive(const Session& session, signing::Verifier& verifier, const ReceivedRequest& request) {
    const Moment now = session.world.now();
    const signing::SignedHeaders headers{request.header(signing::kIdHeader),
                                         request.header(signing::kTimestampHeader),
                                         request.header(signing::kSignatureHeader)};
    const signing::Verdict verdict = verifier.verify(headers, request.body, now);
    ++counts_[static_cast<size_t>(verdict)];
    if (!quiet_) {
      if (is_json_) {
        session.say_json(call_for_programs(request, verdict, now));
      } else {
        session.world.out << call_for_people(request, verdict, now) << "\n";
      }
    }
    return secrets_.empty() || verdict == signing::Verdict::kVerified;
  }

  /// "3 calls: 2 verified, 1 BAD signature".
  std::string totals() const {
    uint64_t all = 0;
    std::string each;
    for (size_t i = 0; i < counts_.size(); ++i) {
      if (counts_[i] == 0) continue;
      all += counts_[i];
      each += fmt::format("{} {} {}", each.empty() ? ":" : ",", counts_[i],
                          signing::name_of(static_cast<signing::Verdict>(i)));
    }
    return fmt::format("{} calls{}", all, each);
  }

  Address address_{"127.0.0.1", 0};
  std::vector<std::string> secrets_;
  int status_ = 200;
  std::string body_ = "ok";
  bool json_ = false;
  bool quiet_ = false;
  bool is_json_ = false;
  std::array<uint64_t, 5> counts_{};
};

}  // namespace

void add_listen_verb(Verbs& verbs) { verbs.push_back(std::make_unique<Listen>()); }

}  // namespace delayq::cli
