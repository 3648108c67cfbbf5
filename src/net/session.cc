#include "net/session.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace delayq::net {

namespace {

constexpr size_t kScratchBytes = 256 * 1024;
/// How often all sessions are looked at, at most: that takes time.
constexpr std::chrono::milliseconds kBetweenDrops{100};

}  // namespace

SessionSet::SessionSet() : scratch_(kScratchBytes, '\0') {}

SessionSet::~SessionSet() { clear(); }  // before the budget and the list that they are in

void SessionSet::clear() {
  touched_.clear();
  held_back_.clear();
  open_.clear();
}

bool SessionSet::finish_turn() {
  bool any_read = false;
  // Objects that are touched meanwhile are called in the next turn. Two vectors are used in turn, so that
  // none is allocated.
  std::vector<std::shared_ptr<AtTurnEnd>> called = std::move(spare_);
  called.swap(touched_);
  for (const std::shared_ptr<AtTurnEnd>& object : called) any_read |= object->finish_turn();
  called.clear();
  spare_ = std::move(called);
  if (requests_.is_full()) drop_largest_requests();
  if (held_back_.empty() || budget_.is_full()) return any_read;
  for (const std::shared_ptr<Session>& session : std::exchange(held_back_, {})) session->on_budget();
  return true;
}

void SessionSet::drop_largest_requests() {
  while (requests_.is_full()) {
    const auto largest = std::max_element(open_.begin(), open_.end(), [](const auto& one, const auto& other) {
      return one->request_bytes() < other->request_bytes();
    });
    if (largest == open_.end() || (*largest)->request_bytes() == 0)
      return;  // the closing sessions hold the bytes
    // A copy: closing it removes it from the set.
    const std::shared_ptr<Session> session = *largest;  // NOLINT(performance-unnecessary-copy-initialization)
    session->close();
  }
}

bool SessionSet::drop_stranger() {
  if (strangers_.empty()) return false;
  strangers_.front()->close();
  return true;
}

void SessionSet::drop_slow_reader(Steady now) {
  if (!budget_.is_full() || now < last_drop_ + kBetweenDrops) return;
  last_drop_ = now;
  std::shared_ptr<Session> largest;
  for (const std::shared_ptr<Session>& session : open_) {
    if (session->is_read_slowly(now) && (largest == nullptr || session->unsent() > largest->unsent()))
      largest = session;
  }
  if (largest != nullptr) largest->close();
}

namespace {

/// A larger buffer is released when it is empty.
constexpr size_t kKeptCapacity = 64 * 1024;

void clear(std::string& buffer) {
  if (buffer.capacity() > kKeptCapacity) {
    std::string().swap(buffer);
  } else {
    buffer.clear();
  }
}

bool is_temporary(int error) { return error == EAGAIN || error == EINTR; }

/// How long a client that is still sending has to read why it was refused.
constexpr std::chrono::seconds kGoodbye{2};
/// How long a client may hold back others if it does not read,
constexpr std::chrono::seconds kPatience{1};
/// or would need longer than this to read what it has to.
constexpr std::chrono::duration<double> kLongToRead{10};

}  // namespace

Session::Session(SessionSet& set, std::unique_ptr<Socket> socket, std::unique_ptr<Stream> stream,
                 SessionLimits limits)
    : set_(set),
      socket_(std::move(socket)),
      limits_(limits),
      stream_(std::move(stream)),
      share_(set.budget()),
      request_share_(set.requests_) {}

Session::~Session() { forget_stranger(); }

void Session::start(const MakeProtocol& make) {
  set_.open_.insert(shared_from_this());
  protocol_ = make(*this);
  stranger_ = set_.strangers_.insert(set_.strangers_.end(), this);
  stranger_until_ = socket_->now() + limits_.stranger;
  ring_by(*stranger_until_);
  watch_request();
  wait_for_input();
}

std::string_view Session::peer() const {
  if (peer_.empty()) peer_ = socket_->peer();
  return peer_;
}

size_t Session::footprint() const { return input_.capacity() + output_.capacity() + protocol_->footprint(); }

void Session::touch() {
  if (is_touched_ || is_closed_) return;
  is_touched_ = true;
  set_.touch(shared_from_this());
}

bool Session::may_pass_on() const {
  return protocol_->wants_input() && !protocol_->is_over() && unsent() < limits_.output_bytes;
}

bool Session::finish_turn() {
  is_touched_ = false;
  if (is_closed_ || is_closing_) return false;
  send();
  if (is_closed_ || is_closing_) return false;
  account();
  const bool is_held_up = protocol_->go_on();
  const bool any = may_pass_on() && pass_on();
  if (input_ended_ && !told_end_) {
    // Input from before the end is still read, unless the protocol waits for something that may never happen.
    const bool reads_on = !input_.empty() && protocol_->will_want_input() && (any || !may_pass_on());
    if (!reads_on) tell_end();
    if (is_closed_) return any;
  }
  account();
  if (is_held_up || !input_.empty()) wait_for_budget();
  watch_stranger();
  watch_request();
  if (may_receive() && stream_->has_more()) receive();
  wait_for_input();
  return any;
}

// ---- input

size_t Session::room_for_waiting_input() const {
  return limits_.waiting_input_bytes - std::min(limits_.waiting_input_bytes, input_.size());
}

void Session::wait_for_input() {
  if (waits_for_input_ || input_ended_ || is_closed_) return;
  // While the protocol wants no input, a little is still received, so that a disconnect is noticed; after
  // that TCP holds the client back.
  if (!is_closing_ && room_for_waiting_input() == 0 && !may_receive()) return;
  waits_for_input_ = true;
  socket_->wait_for_input();
}

void Session::on_input() {
  waits_for_input_ = false;
  if (is_closing_) return receive_and_drop();
  receive();
}

ssize_t Session::receive_behind(std::string_view& came) {
  const size_t had = input_.size();
  if (may_receive() && had <= set_.scratch_.size() / 2) {
    // Reads into the buffer that all sessions share, after what is left of this one's input: usually a part
    // of a command.
    std::string& scratch = set_.scratch_;
    std::copy(input_.begin(), input_.end(), scratch.begin());
    const ssize_t count = stream_->receive(scratch.data() + had, scratch.size() - had);
    came = std::string_view(scratch).substr(0, had + (count > 0 ? static_cast<size_t>(count) : 0));
    return count;
  }
  // A large buffer grows with the bytes that have arrived, not with the length that the client claims.
  const size_t room = may_receive() ? std::max(had, kKeptCapacity) : room_for_waiting_input();
  input_.resize(had + room);
  const ssize_t count = stream_->receive(input_.data() + had, room);
  input_.resize(had + (count > 0 ? static_cast<size_t>(count) : 0));
  came = input_;
  return count;
}

void Session::receive() {
  if (is_closed_ || is_closing_ || input_ended_) return;
  if (room_for_waiting_input() == 0 && !may_receive()) return touch();
  std::string_view came;
  const ssize_t count = receive_behind(came);
  if (count == 0) {
    input_ended_ = true;
    return touch();
  }
  if (count < 0 && !is_temporary(errno)) return close();
  if (count < 0 && stream_->waits_for_room()) return wait_for_room();
  if (count > 0) total_received_ += static_cast<uint64_t>(count);
  if (count > 0 && may_receive()) {
    const size_t taken = came.size() < protocol_->needed() ? 0 : protocol_->read(came);
    keep(came.substr(taken));
    account();
    watch_stranger();
  }
  watch_request();
  touch();
  wait_for_input();
}

void Session::receive_and_drop() {
  if (is_closed_) return;
  const ssize_t count = stream_->receive(set_.scratch_.data(), set_.scratch_.size());
  if (count == 0 || (count < 0 && (!is_temporary(errno) || stream_->waits_for_room()))) return close();
  wait_for_input();
}

void Session::keep(std::string_view rest) {
  if (rest.empty()) return clear(input_);
  if (rest.data() + rest.size() == input_.data() + input_.size()) {  // its own tail
    input_.erase(0, input_.size() - rest.size());
  } else {
    input_.assign(rest);
  }
}

void Session::tell_end() {
  told_end_ = true;
  const bool has_more_to_say = protocol_->end_input();
  const bool has_output = !protocol_->output().empty() || !output_.empty();
  if (!has_more_to_say && !(has_output && protocol_->is_over())) return close();
  touch();
}

bool Session::pass_on() {
  if (input_.empty() || input_.size() < protocol_->needed()) return false;
  const size_t taken = protocol_->read(input_);
  account();
  if (taken == 0) return false;
  keep(std::string_view(input_).substr(taken));
  touch();
  return true;
}

// ---- output

void Session::send() {
  std::string& fresh = protocol_->output();
  if (output_.empty()) {
    output_.swap(fresh);
  } else {
    output_ += fresh;
    clear(fresh);
  }
  while (sent_ < output_.size()) {
    const ssize_t count = stream_->send(output_.data() + sent_, output_.size() - sent_);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && is_temporary(errno))
      return stream_->waits_for_input() ? wait_for_reply() : wait_for_room();
    if (count <= 0) return close();
    sent_ += static_cast<size_t>(count);
    total_sent_ += static_cast<size_t>(count);
  }
  sent_ = 0;
  clear(output_);
  stall_.reset();
  if (!protocol_->is_over()) return;
  if (!input_ended_ && (!input_.empty() || protocol_->is_amid_request())) return close_gently();
  close();
}

void Session::wait_for_reply() {
  // A client that has not finished its handshake cannot be sent the reason.
  if (protocol_->is_over()) return close();
  wait_for_input();
}

void Session::wait_for_room() {
  // Sent bytes are removed when they are most of the buffer, so that a slow client costs only what it has not
  // received.
  if (sent_ > output_.size() / 2) {
    output_ = output_.substr(sent_);
    sent_ = 0;
  }
  if (!stall_) watch_stall();
  if (waits_for_room_) return;
  waits_for_room_ = true;
  socket_->wait_for_room();
}

void Session::on_room() {
  waits_for_room_ = false;
  if (is_closed_) return;
  if (stream_->waits_for_room()) receive();
  touch();
}

// ---- the budget

void Session::wait_for_budget() {
  if (is_held_back_ || !share_.is_crowded_out(protocol_->held() + unsent())) return;
  is_held_back_ = true;
  set_.hold_back(shared_from_this());
  ring_by(socket_->now() + kPatience);
}

void Session::on_budget() {
  is_held_back_ = false;
  touch();
}

bool Session::is_read_slowly(Steady now) const {
  if (!stall_ || unsent() == 0) return false;
  const std::chrono::duration<double> watched = now - (stall_->deadline - limits_.stall);
  if (watched < kPatience) return false;
  const double pace = static_cast<double>(total_sent_ - stall_->sent_before) / watched.count();
  return pace * kLongToRead.count() < static_cast<double>(unsent());
}

// ---- deadlines

void Session::ring_by(Steady deadline) {
  if (deadline >= alarm_ || is_closed_) return;
  alarm_ = deadline;
  socket_->set_alarm(deadline);
}

void Session::on_alarm() {
  alarm_ = Steady::max();
  if (is_closed_) return;
  const Steady now = socket_->now();
  const bool is_quiet_stranger = stranger_until_ && now >= *stranger_until_ && !begun_;
  if (is_quiet_stranger || (goodbye_ && now >= *goodbye_)) return close();
  check_stall(now);
  if (!is_closed_) check_request(now);
  if (!is_closed_ && is_held_back_) {
    set_.drop_slow_reader(now);
    ring_by(now + kPatience);
  }
  if (is_closed_) return;
  if (goodbye_) ring_by(*goodbye_);
  if (stranger_until_) ring_by(begun_ ? std::max(*stranger_until_, request_deadline()) : *stranger_until_);
  if (stall_) ring_by(stall_->deadline);
  if (begun_) ring_by(request_deadline());
}

void Session::watch_stall() {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limits_.stall).count();
  const uint64_t least = limits_.least_taken * static_cast<uint64_t>(seconds);
  stall_ = Stall{socket_->now() + limits_.stall, total_sent_,
                 std::max<uint64_t>(1, std::min<uint64_t>(unsent(), least))};
  ring_by(stall_->deadline);
}

void Session::check_stall(Steady now) {
  if (!stall_ || now < stall_->deadline) return;
  if (!waits_for_room_) return stall_.reset();
  if (total_sent_ - stall_->sent_before < stall_->least) return close();
  watch_stall();
}

void Session::watch_request() {
  // The cheapest question first: this is called several times for each request.
  const bool is_amid = !is_closed_ &&
                       (!input_.empty() || protocol_->is_amid_request() || stream_->is_greeting()) &&
                       may_receive();
  if (!is_amid) return begun_.reset();
  if (begun_ && begun_->number == protocol_->requests()) return;
  begun_ = Begun{socket_->now(), protocol_->requests(), total_received_};
  ring_by(request_deadline());
}

Steady Session::request_deadline() const {
  const uint64_t received = total_received_ - begun_->received_before;
  return begun_->at + limits_.request + std::chrono::milliseconds(1000 * received / limits_.bytes_per_second);
}

void Session::check_request(Steady now) {
  if (!begun_ || now < request_deadline()) return;
  begun_.reset();
  if (!may_receive()) return touch();  // other sessions hold the budget: the client is not late
  protocol_->time_out();
  if (!protocol_->is_over()) return close();
  touch();
}

void Session::watch_stranger() {
  if (!stranger_until_ || is_closed_) return;
  if (protocol_->is_known()) return forget_stranger();
  if (protocol_->requests() == stranger_requests_) return;
  stranger_requests_ = protocol_->requests();
  stranger_until_ = socket_->now() + limits_.stranger;
  set_.strangers_.splice(set_.strangers_.end(), set_.strangers_, stranger_);
}

void Session::forget_stranger() {
  if (!stranger_until_) return;
  stranger_until_.reset();
  set_.strangers_.erase(stranger_);
}

// ---- the end

void Session::close_gently() {
  if (is_closing_) return;
  is_closing_ = true;
  clear(input_);
  begun_.reset();
  stream_->finish();
  socket_->end_output();
  goodbye_ = socket_->now() + kGoodbye;
  ring_by(*goodbye_);
  wait_for_input();
}

void Session::close() {
  if (is_closed_) return;
  is_closed_ = true;
  begun_.reset();
  forget_stranger();
  protocol_->hang_up();
  share_.set(0);
  request_share_.set(0);
  if (!is_closing_) stream_->finish();
  socket_->close();
  set_.open_.erase(shared_from_this());  // the caller holds it, too
}

}  // namespace delayq::net
