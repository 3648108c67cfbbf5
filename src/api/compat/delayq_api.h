#pragma once

#include <string>
#include <string_view>

#include "api/compat/wording.h"
#include "api/http/dialect.h"

/// What the two halves of the DelayQ API share: delayq_api.cc has what producers and people ask for,
/// delayq_consuming.cc what consumers do.
namespace delayq::compat::dq {

/// {"code":"0","info":...,"data":...}; data is a text, with JSON in it where there is more to say.
http::Response success(std::string_view info, std::string_view data);
/// The same with code "1" and no data. `what` is what the original says of the failure.
http::Response failure(std::string_view what, const Error& error);

/// A job as the API shows it, appended as JSON. Where it says no ttr of its own, that of its topic is shown.
void write_job(json::Writer& json, const Job& job, const Queue& queue);
std::string job_text(const Job& job, const Queue& queue);

/// What a request with a jobid alone is about, once the job is found, in whatever state, and its topic may be
/// touched.
struct ById {
  std::string_view failed;  ///< what to say of a failure
  void (*then)(const http::Exchange& exchange, const FoundJob& found);
};
Status find_by_id(const http::DialectCall& call, const ById& what);

// ---- consumers
Status pop(const http::DialectCall& call);
Status pop_waiting(const http::DialectCall& call);
Status finish(const http::DialectCall& call);

}  // namespace delayq::compat::dq
