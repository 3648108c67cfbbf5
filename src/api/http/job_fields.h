#pragma once

#include <optional>
#include <string_view>

#include "api/http/fields.h"
#include "json/writer.h"
#include "queue/verbs.h"

namespace delayq::http {

/// Everything about a job but its body and topic. An id that it has already is that of the path.
void read_job(Fields& fields, PushRequest& job);
/// "callback_format", where it is given.
std::optional<CallbackFormat> read_format(Fields& fields);
/// What it says about an id that is taken, if it does.
std::optional<OnConflict> read_on_conflict(Fields& fields);
/// The body of a job in a JSON request: any value, kept as it was written.
void read_body(Fields& fields, PushRequest& job);

/// The members of what a push answers.
void write_receipt(json::Writer& json, std::string_view topic, const PushReceipt& receipt);
/// A result among several: the receipt's members, or the problem's.
void write_result(json::Writer& json, std::string_view topic, const Result<PushReceipt>& result);

}  // namespace delayq::http
