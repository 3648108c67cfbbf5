#include "delivery/webhook/curl_caller.h"

#include <utility>

#include "delivery/webhook/curl_worker.h"

namespace delayq::webhook {

Result<std::unique_ptr<CurlCaller>> CurlCaller::open(CurlCallerOptions options) {
  const size_t max_calls = options.max_calls;
  auto clock = options.clock;
  auto worker = CurlWorker::open(std::move(options));
  if (!worker.ok()) return worker.error();
  return std::unique_ptr<CurlCaller>(new CurlCaller(std::move(*worker), max_calls, std::move(clock)));
}

CurlCaller::CurlCaller(std::unique_ptr<CurlWorker> worker, size_t max_calls,
                       std::function<std::chrono::microseconds()> clock)
    : worker_(std::move(worker)), clock_(std::move(clock)), slots_(max_calls) {
  free_slots_.reserve(max_calls);
  for (size_t number = max_calls; number > 0; --number)
    free_slots_.push_back(static_cast<uint32_t>(number - 1));
}

CurlCaller::~CurlCaller() = default;

void CurlCaller::set_wakeup(std::function<void()> wakeup) { worker_->start(std::move(wakeup)); }

size_t CurlCaller::room() const { return free_slots_.size(); }

void CurlCaller::call(Call call, Done done) {
  if (free_slots_.empty()) {
    refused_.push_back(std::move(done));
    return;
  }
  const uint32_t number = free_slots_.back();
  free_slots_.pop_back();
  slots_[number] = std::move(done);
  leaving_.push_back({number, std::move(call), std::nullopt});
}

void CurlCaller::hear() { worker_->exchange().take(ended_); }

bool CurlCaller::poll() {
  const bool has_any = !ended_.empty() || !refused_.empty();
  answer_refused();
  answer_ended();
  // After the answers, which have often made room for the next.
  if (!leaving_.empty()) send_off();
  return has_any;
}

void CurlCaller::send_off() {
  if (clock_) {
    const std::chrono::microseconds now = clock_();
    for (NumberedCall& each : leaving_) {
      if (each.call.start_within > Millis::zero()) each.begin_by = now + each.call.start_within;
    }
  }
  worker_->exchange().give(leaving_);
}

void CurlCaller::answer_refused() {
  for (Done& done : std::exchange(refused_, {})) {
    CallResult result;
    result.error = CallError::kNoRoom;
    result.error_text = "there are too many calls at once";
    done(std::move(result));
  }
}

void CurlCaller::answer_ended() {
  for (NumberedResult& each : ended_) {
    Done done = std::move(slots_[each.number]);
    slots_[each.number] = nullptr;
    free_slots_.push_back(each.number);
    done(std::move(each.result));
  }
  ended_.clear();
}

}  // namespace delayq::webhook
