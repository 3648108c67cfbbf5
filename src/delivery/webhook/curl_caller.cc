#include "delivery/webhook/curl_caller.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <mutex>
#include <thread>
#include <unistd.h>
#include <utility>

#include <curl/curl.h>
#include <fmt/format.h>

#include "core/text.h"
#include "delivery/webhook/curl_transfer.h"

namespace delayq::webhook {

/// Passes calls and their results between two threads: whole batches, under one lock, and with one wake-up
/// for all that the other thread has not seen yet.
class CallExchange {
 public:
  /// Called outside of the lock, each by the other thread. Set before the worker starts.
  std::function<void()> wake_worker;
  std::function<void()> wake_owner;

  // ---- The owner of the calls ---------------------------------------------------------------------------

  /// Passes on `calls`, which is empty afterwards.
  void give(std::vector<NumberedCall>& calls) {
    bool is_first = false;
    {
      const std::lock_guard lock(mutex_);
      is_first = calls_.empty();
      move_all(calls, calls_);
    }
    if (is_first) wake_worker();
  }

  /// Adds all results to `results`.
  void take(std::vector<NumberedResult>& results) {
    if (!has_results_.load(std::memory_order_acquire)) return;
    const std::lock_guard lock(mutex_);
    move_all(results_, results);
    has_results_.store(false, std::memory_order_relaxed);
  }

  // ---- The worker ---------------------------------------------------------------------------------------

  /// Moves all calls into `calls`, which must be empty.
  void take(std::vector<NumberedCall>& calls) {
    const std::lock_guard lock(mutex_);
    calls.swap(calls_);
  }

  /// Passes on `results`, which is empty afterwards.
  void put(std::vector<NumberedResult>& results) {
    if (results.empty()) return;
    bool is_first = false;
    {
      const std::lock_guard lock(mutex_);
      is_first = results_.empty();
      move_all(results, results_);
      has_results_.store(true, std::memory_order_release);
    }
    if (is_first && wake_owner) wake_owner();
  }

 private:
  template <class T>
  static void move_all(std::vector<T>& from, std::vector<T>& to) {
    if (to.empty()) {
      to.swap(from);
      return;
    }
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
    from.clear();
  }

  std::mutex mutex_;
  std::vector<NumberedCall> calls_;
  std::vector<NumberedResult> results_;
  std::atomic<bool> has_results_ = false;
};

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

// ---- the thread that makes the calls

/// The thread that makes the calls: libcurl's multi handle, driven by the sockets that are ready.
class CurlWorker {
 public:
  static Result<std::unique_ptr<CurlWorker>> open(CurlCallerOptions options);
  /// Aborts what is in flight.
  ~CurlWorker();
  CurlWorker(const CurlWorker&) = delete;
  CurlWorker& operator=(const CurlWorker&) = delete;

  /// Starts the thread; `wake_owner` is called when there are results. Once.
  void start(std::function<void()> wake_owner);
  CallExchange& exchange() { return exchange_; }

 private:
  CurlWorker(CurlCallerOptions options, SocketWatch watch);
  void run();
  void begin_calls();
  void refuse_late(uint32_t number);
  void react(const SocketWatch::Event& event);
  void collect();
  void end(CurlTransfer& transfer, CURLcode code);
  void break_off();

  static int on_socket(CURL* handle, curl_socket_t socket, int what, void* self, void* unused);
  static int on_timer(CURLM* multi, long timeout_ms, void* self);

  CallExchange exchange_;
  std::atomic<bool> is_stopping_ = false;
  SocketWatch watch_;
  TransferSettings settings_;
  CURLM* multi_;
  std::vector<std::unique_ptr<CurlTransfer>> transfers_;  ///< made as they are needed, at most one per call
  std::vector<CurlTransfer*> idle_;
  std::vector<NumberedCall> arrived_;
  std::vector<NumberedResult> ended_;
  std::thread thread_;
};

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
  // Signals are handled by other threads; OpenSSL causes one when it writes to a closed connection.
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
    CURL* const handle = message->easy_handle;  // the message is invalid after the handle is removed
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
  // Closes the connections. Some are written to first, which is safe on this thread: it blocks signals.
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

// ---- the caller

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
