#pragma once

#include "api/http/dialect.h"

/// The APIs of three other delay queues, as their documents describe them: paths, fields, texts.
/// docs/reference/compat.md has every call. The queue decides everything else, as for every other API.
///
/// What holds for all three:
///  - Unknown fields are ignored, as in the originals. Known fields must have the right type.
///  - A refusal is in the API's own form. Its HTTP status is 200 where the original could have said the same
///    (bad fields, an id that is taken, no such job); what the originals do not have (tokens, limits,
///    overload, a path that is not there) has the status that HTTP has for it.
namespace delayq::compat {

/// /delay-queue/api/jobs/...: {"code","message","data"}.
const http::Dialect& go_delay_queue();
/// /job: {"success","message","data"}.
const http::Dialect& callback();
/// /delayq/...: {"code","info","data"}.
const http::Dialect& delayq();

}  // namespace delayq::compat
