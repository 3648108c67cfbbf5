#include "delivery/webhook/curl_worker.h"

#include <algorithm>
#include <csignal>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "core/text.h"

namespace delayq::webhook {

namespace {

bool begin_libcurl() {
  static const bool kIsBegun = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  return kIsBegun;
}

uint32_t events_of(int what) {
  switch (what) {
    case CURL_POLL_IN:
      return EPOLLIN;
    case CURL_POLL_OUT:
      return EPOLLOUT;
    case CURL_POLL_INOUT:
      return EPOLLIN | EPOLLOUT;
    default:
      return 0;
  }
}

}  // namespace

Result<std::unique_ptr<CurlWorker>> CurlWorker::open(CurlCallerOptions options) {
  const auto failed = [](ErrorCode code, std::string detail) {
    return Error{code, "webhook", std::move(detail)};
  };
  if (!begin_libcurl()) return failed(ErrorCode::kInternal, "libcurl cannot be initialised");
  if (!options.ca_file.empty() && ::access(options.ca_file.c_str(), R_OK) != 0) {
    return failed(ErrorCode::kInvalid, fmt::format("ca_file: {} cannot be read", quote(options.ca_file)));
  }
  auto watch = SocketWatch::open();
  if (!watch.ok()) return watch.error();
  return std::unique_ptr<CurlWorker>(new CurlWorker(std::move(options), std::move(*watch)));
}

CurlWorker::CurlWorker(CurlCallerOptions options, SocketWatch watch)
    : watch_(std::move(watch)),
      settings_{.options = std::move(options), .opened = {}, .closing = {}},
      multi_(curl_multi_init()) {
  for (const std::string& host : settings_.options.known_hosts) {
    settings_.known_hosts = curl_slist_append(settings_.known_hosts, host.c_str());
  }
  settings_.opened = [this](curl_socket_t socket) { watch_.opened(socket); };
  settings_.closing = [this](curl_socket_t socket) { watch_.closing(socket); };
  curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &CurlWorker::on_socket);
  curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &CurlWorker::on_timer);
  curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, static_cast<long>(settings_.options.max_calls));
  exchange_.wake_worker = [this] { watch_.wake(); };
}

CurlWorker::~CurlWorker() {
  is_stopping_.store(true, std::memory_order_release);
  watch_.wake();
  if (thread_.joinable()) thread_.join();
  if (multi_ != nullptr) curl_multi_cleanup(multi_);
  curl_slist_free_all(settings_.known_hosts);
}

void CurlWorker::start(std::function<void()> wake_owner) {
  exchange_.wake_owner = std::move(wake_owner);
  thread_ = std::thread([this] { run(); });
}

void CurlWorker::run() {
  // Others look after signals; and OpenSSL, writing to somebody who has gone, causes one.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  while (!is_stopping_.load(std::memory_order_acquire)) {
    bool is_timed_out = false;
    for (const SocketWatch::Event& event : watch_.wait(is_timed_out)) react(event);
    begin_calls();
    int running = 0;
    if (is_timed_out || watch_.take_due()) curl_multi_socket_action(multi_, CURL_SOCKET_TIMEOUT, 0, &running);
    collect();
    exchange_.put(ended_);
  }
  break_off();
}

void CurlWorker::begin_calls() {
  exchange_.take(arrived_);
  if (arrived_.empty()) return;
  const auto& clock = settings_.options.clock;
  const std::chrono::microseconds now = clock ? clock() : std::chrono::microseconds::zero();
  for (NumberedCall& each : arrived_) {
    if (each.begin_by && *each.begin_by < now) {
      refuse_late(each.number);
      continue;
    }
    if (idle_.empty()) {
      transfers_.push_back(std::make_unique<CurlTransfer>(settings_));
      idle_.push_back(transfers_.back().get());
    }
    CurlTransfer& transfer = *idle_.back();
    idle_.pop_back();
    CURL* const handle = transfer.begin(each.number, std::move(each.call));
    if (handle == nullptr) {
      end(transfer, CURLE_URL_MALFORMAT);
    } else if (curl_multi_add_handle(multi_, handle) != CURLM_OK) {
      end(transfer, CURLE_OUT_OF_MEMORY);
    }
  }
  arrived_.clear();
}

void CurlWorker::refuse_late(uint32_t number) {
  NumberedResult& late = ended_.emplace_back();
  late.number = number;
  late.result.error = CallError::kNoRoom;
  late.result.error_text = "the call had to wait for too long";
}

void CurlWorker::react(const SocketWatch::Event& event) {
  int what = 0;
  if ((event.what & EPOLLIN) != 0) what |= CURL_CSELECT_IN;
  if ((event.what & EPOLLOUT) != 0) what |= CURL_CSELECT_OUT;
  if ((event.what & (EPOLLERR | EPOLLHUP)) != 0) what |= CURL_CSELECT_ERR;
  int running = 0;
  curl_multi_socket_action(multi_, event.fd, what, &running);
}

void CurlWorker::collect() {
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode code = message->data.result;
    CURL* const handle = message->easy_handle;  // the message is gone with the handle
    curl_multi_remove_handle(multi_, handle);
    end(CurlTransfer::of(handle), code);
  }
}

void CurlWorker::end(CurlTransfer& transfer, CURLcode code) {
  const uint32_t number = transfer.number();
  ended_.push_back({number, transfer.finish(code)});
  idle_.push_back(&transfer);
}

void CurlWorker::break_off() {
  for (const auto& transfer : transfers_) curl_multi_remove_handle(multi_, transfer->handle());
  idle_.clear();
  transfers_.clear();
  // Connections belong to the multi handle, and some say good-bye: here, where no signal can come of it.
  curl_multi_cleanup(std::exchange(multi_, nullptr));
}

int CurlWorker::on_socket(CURL* /*handle*/, curl_socket_t socket, int what, void* self, void* /*unused*/) {
  static_cast<CurlWorker*>(self)->watch_.watch(socket, events_of(what));
  return 0;
}

int CurlWorker::on_timer(CURLM* /*multi*/, long timeout_ms, void* self) {
  static_cast<CurlWorker*>(self)->watch_.set_timer(Millis{timeout_ms});
  return 0;
}

}  // namespace delayq::webhook
