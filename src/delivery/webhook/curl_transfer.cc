#include "delivery/webhook/curl_transfer.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <fmt/format.h>

namespace delayq::webhook {

namespace {

constexpr long kReceiveBytes = 4'096;  // answers are small
constexpr long kSendBytes = 16'384;    // libcurl's smallest; small bodies leave with their headers
constexpr std::string_view kRetryAfter = "retry-after:";

/// Removes headers that libcurl would add by itself: the wait for "100 Continue", and a content type. They
/// come after those of the call, so that a content type of the call takes precedence.
curl_slist* constant_headers() {
  static char type[] = "Content-Type:";
  static char expect[] = "Expect:";
  static curl_slist last{type, nullptr};
  static curl_slist first{expect, &last};
  return &first;
}

bool is_token(std::string_view method) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  return !method.empty() && std::all_of(method.begin(), method.end(), [&](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           kOthers.find(c) != std::string_view::npos;
  });
}

CallError kind_of(CURLcode code) {
  switch (code) {
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return CallError::kBadCall;
    case CURLE_COULDNT_RESOLVE_HOST:
      return CallError::kResolve;
    case CURLE_COULDNT_CONNECT:
      return CallError::kConnect;
    case CURLE_OPERATION_TIMEDOUT:
      return CallError::kTimeout;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS:
      return CallError::kTls;
    default:
      return CallError::kBroken;
  }
}

template <class Value>
void set(CURL* handle, CURLoption option, Value value) {
  [[maybe_unused]] const CURLcode code = curl_easy_setopt(handle, option, value);
  assert(code == CURLE_OK);
}

}  // namespace

CurlTransfer::CurlTransfer(TransferSettings& settings) : settings_(settings), handle_(curl_easy_init()) {
  set_up();
}

CurlTransfer::~CurlTransfer() { curl_easy_cleanup(handle_); }

CurlTransfer& CurlTransfer::of(CURL* handle) {
  char* self = nullptr;
  curl_easy_getinfo(handle, CURLINFO_PRIVATE, &self);
  return *reinterpret_cast<CurlTransfer*>(self);
}

void CurlTransfer::set_up() {
  const CurlCallerOptions& options = settings_.options;
  set(handle_, CURLOPT_PRIVATE, this);
  set(handle_, CURLOPT_ERRORBUFFER, error_);
  set(handle_, CURLOPT_NOSIGNAL, 1L);
  // Else a call that timed out while its name is being resolved would delay all others until that is done.
  set(handle_, CURLOPT_QUICK_EXIT, 1L);
  set(handle_, CURLOPT_PROTOCOLS_STR, "http,https");
  set(handle_, CURLOPT_FOLLOWLOCATION, 0L);
  set(handle_, CURLOPT_PROXY, "");  // not even the environment's
  set(handle_, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
  set(handle_, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
  set(handle_, CURLOPT_TCP_NODELAY, 1L);
  set(handle_, CURLOPT_TCP_KEEPALIVE, 1L);
  set(handle_, CURLOPT_BUFFERSIZE, kReceiveBytes);
  set(handle_, CURLOPT_UPLOAD_BUFFERSIZE, kSendBytes);
  set(handle_, CURLOPT_USERAGENT, options.user_agent.c_str());
  set(handle_, CURLOPT_WRITEFUNCTION, &CurlTransfer::on_body);
  set(handle_, CURLOPT_WRITEDATA, this);
  set(handle_, CURLOPT_HEADERFUNCTION, &CurlTransfer::on_header);
  set(handle_, CURLOPT_HEADERDATA, this);
  set(handle_, CURLOPT_OPENSOCKETFUNCTION, &CurlTransfer::on_open);
  set(handle_, CURLOPT_OPENSOCKETDATA, this);
  // Connections outlive transfers, so this callback gets the settings instead of the transfer.
  set(handle_, CURLOPT_CLOSESOCKETFUNCTION, &CurlTransfer::on_close);
  set(handle_, CURLOPT_CLOSESOCKETDATA, &settings_);
  if (settings_.known_hosts != nullptr) set(handle_, CURLOPT_RESOLVE, settings_.known_hosts);
  if (!options.ca_file.empty()) {
    set(handle_, CURLOPT_CAINFO, options.ca_file.c_str());
    set(handle_, CURLOPT_CAPATH, static_cast<char*>(nullptr));
  }
  if (options.skips_tls_check) {
    set(handle_, CURLOPT_SSL_VERIFYPEER, 0L);
    set(handle_, CURLOPT_SSL_VERIFYHOST, 0L);
  }
}

CURL* CurlTransfer::begin(uint32_t number, Call call) {
  number_ = number;
  call_ = std::move(call);
  answer_.clear();
  body_bytes_ = header_bytes_ = header_lines_ = 0;
  is_cut_ = has_opened_ = false;
  refusal_.clear();
  retry_after_.reset();
  error_[0] = '\0';
  if (!call_.headers.valid() || !is_token(call_.method) || call_.url.find('\0') != std::string::npos)
    return nullptr;
  if (curl_easy_setopt(handle_, CURLOPT_URL, call_.url.c_str()) != CURLE_OK) return nullptr;
  set_method();
  set_headers();
  const Millis total =
      call_.total_timeout > Millis::zero() ? call_.total_timeout : settings_.options.default_timeout;
  set(handle_, CURLOPT_TIMEOUT_MS, static_cast<long>(total.count()));
  const Millis connect =
      call_.connect_timeout > Millis::zero() ? std::min(call_.connect_timeout, total) : total;
  set(handle_, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(connect.count()));
  // Where a host may offer HTTP/2, a further call waits for the connection that is being made, to share it.
  // Plain HTTP connections are not shared, so waiting would be of no use.
  const bool is_tls = call_.url.size() > 5 && ::strncasecmp(call_.url.c_str(), "https", 5) == 0;
  set(handle_, CURLOPT_PIPEWAIT, is_tls ? 1L : 0L);
  return handle_;
}

void CurlTransfer::set_method() {
  const bool is_get = call_.method == "GET" && call_.body.empty();
  if (call_.method == "HEAD") {
    set(handle_, CURLOPT_NOBODY, 1L);
  } else if (is_get) {
    set(handle_, CURLOPT_HTTPGET, 1L);
  } else {
    set(handle_, CURLOPT_POST, 1L);
    set(handle_, CURLOPT_POSTFIELDS, call_.body.data());
    set(handle_, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(call_.body.size()));
  }
  const bool has_own_way = is_get || call_.method == "POST" || call_.method == "HEAD";
  set(handle_, CURLOPT_CUSTOMREQUEST, has_own_way ? nullptr : call_.method.c_str());
}

void CurlTransfer::set_headers() {
  header_nodes_.clear();
  std::string& lines = const_cast<std::string&>(call_.headers.lines());  // libcurl's list has no const
  for (size_t at = 0; at < lines.size(); at = lines.find('\0', at) + 1) {
    header_nodes_.push_back({lines.data() + at, nullptr});
  }
  for (size_t i = 0; i < header_nodes_.size(); ++i) {
    header_nodes_[i].next = i + 1 < header_nodes_.size() ? &header_nodes_[i + 1] : constant_headers();
  }
  set(handle_, CURLOPT_HTTPHEADER, header_nodes_.empty() ? constant_headers() : header_nodes_.data());
}

CallResult CurlTransfer::finish(CURLcode code) {
  CallResult result;
  curl_off_t took = 0;  // a call that was never begun took no time; libcurl would return that of the last one
  if (code != CURLE_URL_MALFORMAT) curl_easy_getinfo(handle_, CURLINFO_TOTAL_TIME_T, &took);
  // An answer that was too long to be read to its end is an answer.
  if (code == CURLE_OK || is_cut_) {
    long status = 0;
    curl_easy_getinfo(handle_, CURLINFO_RESPONSE_CODE, &status);
    result.status = static_cast<int>(status);
    result.is_answer_cut = body_bytes_ > answer_.size();
    result.answer = std::move(answer_);
    result.retry_after = retry_after_;
  } else {
    result = failure(code);
  }
  result.took = std::chrono::microseconds{took};
  call_ = {};
  return result;
}

CallResult CurlTransfer::failure(CURLcode code) {
  CallResult result;
  result.error = kind_of(code);
  result.error_text = error_[0] != '\0' ? error_ : curl_easy_strerror(code);
  long request_bytes = 0;
  curl_easy_getinfo(handle_, CURLINFO_REQUEST_SIZE, &request_bytes);
  // libcurl returns that code also for an answer that is not HTTP.
  if (code == CURLE_UNSUPPORTED_PROTOCOL && request_bytes > 0) result.error = CallError::kBroken;
  if (!call_.headers.valid()) {
    result.error_text = "a header has a control character, or its name is not valid";
  } else if (!is_token(call_.method)) {
    result.error_text = "the method is not a valid HTTP method";
  } else if (header_bytes_ > CurlCaller::kHeaderBytes || header_lines_ > CurlCaller::kHeaderLines) {
    result.error_text = fmt::format("the answer has more than {} headers or {} bytes of them",
                                    CurlCaller::kHeaderLines, CurlCaller::kHeaderBytes);
  } else if (code == CURLE_COULDNT_CONNECT && !refusal_.empty() && !has_opened_) {
    result.error = CallError::kRefusedAddress;
    result.error_text = "the address must not be called: " + refusal_;
  }
  return result;
}

size_t CurlTransfer::take_body(const char* bytes, size_t count) {
  body_bytes_ += count;
  answer_.append(bytes, std::min(count, kAnswerBytes - answer_.size()));
  if (body_bytes_ <= CurlCaller::kReadBytes) return count;
  is_cut_ = true;
  return 0;  // libcurl ends the transfer
}

size_t CurlTransfer::take_header(std::string_view line) {
  header_bytes_ += line.size();
  header_lines_ += 1;
  if (header_bytes_ > CurlCaller::kHeaderBytes || header_lines_ > CurlCaller::kHeaderLines) return 0;
  if (line.size() > kRetryAfter.size() && (line[0] == 'R' || line[0] == 'r') &&
      ::strncasecmp(line.data(), kRetryAfter.data(), kRetryAfter.size()) == 0) {
    std::string_view value = line.substr(kRetryAfter.size());
    while (!value.empty() && (value.back() == '\n' || value.back() == '\r')) value.remove_suffix(1);
    retry_after_ = parse_retry_after(value);
  }
  return line.size();
}

curl_socket_t CurlTransfer::open_socket(const curl_sockaddr& address) {
  const auto ip = IpAddress::from(address.addr);
  auto refusal =
      ip ? settings_.options.guard.refusal(*ip) : std::optional<std::string>("it is no IP address");
  if (refusal) {
    refusal_ = std::move(*refusal);
    return CURL_SOCKET_BAD;
  }
  has_opened_ = true;
  const SocketOpener& opener = settings_.options.opener;
  const int socket = opener ? opener(address.addr, address.socktype, address.protocol)
                            : ::socket(address.family, address.socktype | SOCK_CLOEXEC, address.protocol);
  if (socket < 0) return CURL_SOCKET_BAD;
  settings_.opened(socket);
  return socket;
}

size_t CurlTransfer::on_body(char* bytes, size_t size, size_t count, void* self) {
  return static_cast<CurlTransfer*>(self)->take_body(bytes, size * count);
}

size_t CurlTransfer::on_header(char* bytes, size_t size, size_t count, void* self) {
  return static_cast<CurlTransfer*>(self)->take_header({bytes, size * count});
}

curl_socket_t CurlTransfer::on_open(void* self, curlsocktype /*purpose*/, curl_sockaddr* address) {
  return static_cast<CurlTransfer*>(self)->open_socket(*address);
}

int CurlTransfer::on_close(void* settings, curl_socket_t socket) {
  static_cast<TransferSettings*>(settings)->closing(socket);
  return ::close(socket);
}

namespace {

constexpr size_t kEventsAtOnce = 256;

void add(int epoll, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

void drain(int fd) {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t bytes = ::read(fd, &count, sizeof(count));
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

SocketWatch::SocketWatch(int epoll, int wakeup, int timer)
    : epoll_(epoll), wakeup_(wakeup), timer_fd_(timer) {}

Result<SocketWatch> SocketWatch::open() {
  SocketWatch watch(::epoll_create1(EPOLL_CLOEXEC), ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                    ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (watch.epoll_.get() < 0 || watch.wakeup_.get() < 0 || watch.timer_fd_.get() < 0) {
    return Error{ErrorCode::kUnavailable, "webhook",
                 fmt::format("no descriptors left: {}", std::strerror(errno))};
  }
  add(watch.epoll_.get(), watch.wakeup_.get());
  add(watch.epoll_.get(), watch.timer_fd_.get());
  return watch;
}

SocketWatch::Known& SocketWatch::known(int fd) {
  const auto at = static_cast<size_t>(fd);
  if (at >= sockets_.size()) sockets_.resize(at + 64);
  return sockets_[at];
}

void SocketWatch::opened(int fd) { known(fd) = {.wanted = 0, .told = 0, .is_ours = true}; }

void SocketWatch::closing(int fd) {
  tell(fd, 0);
  known(fd) = {};
}

void SocketWatch::tell(int fd, uint32_t what) {
  Known& socket = known(fd);
  if (socket.told == what) return;
  epoll_event event{};
  event.events = what;
  event.data.fd = fd;
  const int operation = what == 0 ? EPOLL_CTL_DEL : socket.told == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
  ::epoll_ctl(epoll_.get(), operation, fd, &event);
  socket.told = what;
}

void SocketWatch::watch(int fd, uint32_t what) {
  Known& socket = known(fd);
  socket.wanted = what;
  // Watching for EPOLLOUT is always stopped: a socket is nearly always writable, and would report it again
  // and again.
  if (what == 0 && socket.is_ours && socket.told == EPOLLIN) return;
  tell(fd, what);
}

void SocketWatch::arm() {
  itimerspec when{};
  if (timer_ > Millis::zero()) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(timer_);
    when.it_value.tv_sec = seconds.count();
    when.it_value.tv_nsec = std::chrono::nanoseconds(timer_ - seconds).count();
  }
  ::timerfd_settime(timer_fd_.get(), 0, &when, nullptr);
  is_timer_set_ = true;
}

const std::vector<SocketWatch::Event>& SocketWatch::wait(bool& is_timed_out) {
  const bool is_due = timer_ == Millis::zero();
  if (!is_due && !is_timer_set_) arm();
  std::array<epoll_event, kEventsAtOnce> ready;  // NOLINT: filled by the kernel
  const int count = ::epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), is_due ? 0 : -1);
  events_.clear();
  is_timed_out = is_due;
  for (int i = 0; i < count; ++i) {
    const int fd = ready[static_cast<size_t>(i)].data.fd;
    const uint32_t what = ready[static_cast<size_t>(i)].events;
    if (fd == wakeup_.get()) {
      drain(fd);
    } else if (fd == timer_fd_.get()) {
      drain(fd);
      is_timed_out = true;
    } else if (known(fd).wanted == 0) {
      tell(fd, 0);  // closed, or unexpected bytes; libcurl notices when it uses the socket again
    } else {
      events_.push_back({fd, what});
    }
  }
  if (is_timed_out) set_timer(Millis{-1});
  return events_;
}

void SocketWatch::wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t bytes = ::write(wakeup_.get(), &one, sizeof(one));
}

}  // namespace delayq::webhook
