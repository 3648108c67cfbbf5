#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/verb.h"
#include "core/time.h"

namespace delayq::cli {

/// One line of what `delayq doctor` finds.
struct Finding {
  enum class Result : uint8_t { kOk, kWarning, kProblem, kSkipped };

  std::string about;  ///< "clock"
  Result result = Result::kOk;
  std::string text;
  std::string advice{};  ///< what to do; empty: nothing
};

using Findings = std::vector<Finding>;

/// The page for people, with lines that are not wider than `width`, as far as words allow.
std::string render_findings(const Findings& findings, size_t width);
/// The same for programs.
std::string findings_as_json(std::string_view server, const Findings& findings);

/// The replies that the findings are made of; what the token does not allow is missing.
struct Examined {
  resp::Value server;  ///< SERVER
  Moment asked{};      ///< our clock before and after it
  Moment answered{};
  std::optional<resp::Value> totals{};  ///< STATS
  std::optional<resp::Value> later{};   ///< STATS again
  std::optional<resp::Value> consumers{};
  Status ready{};
  struct Topic {
    std::string name;
    int64_t ready = 0, reserved = 0, dead = 0;
    bool is_paused = false;
    std::optional<resp::Value> stats{};  ///< of those that have ready jobs, the largest ones
  };
  std::vector<Topic> topics{};
  bool has_all_topics = true;
};

/// What the server is and does: engine, clock, readiness, disk, limits, dead jobs, consumers. `now` is the
/// server's.
Findings judge(const Examined& examined, bool uses_tls, bool is_local);

/// What answers at an address that a client could not use.
struct Probe {
  bool connects = false;
  std::string plain{};  ///< the first bytes that came for PING without TLS
  bool speaks_tls = false;
  std::string http_at{};  ///< where a delayq answers HTTP; empty: nowhere
  std::string resp_at{};  ///< the RESP address that it names
};
/// Why a client with these options could not connect, and what to do.
Finding explain_unreachable(const Server& server, const Error& error, const Probe& probe);

}  // namespace delayq::cli
