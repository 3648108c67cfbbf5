#pragma once

#include <memory>
#include <string>

#include "core/random.h"
#include "net/session.h"
#include "tests/simulation/connections/wire.h"

namespace delayq::connections {

/// Canary::kOverflow.
class OverflowingSession final : public net::Session {
 public:
  using Session::Session;

 protected:
  size_t room_for_waiting_input() const override { return limits().waiting_input_bytes - waiting_input(); }
};

/// Canary::kTlsSpin.
class ForgetfulStream final : public CheckedStream {
 public:
  using CheckedStream::CheckedStream;
  bool waits_for_input() const override { return false; }
};

/// Canary::kDisorder.
class DisorderlyProtocol final : public net::Protocol {
 public:
  DisorderlyProtocol(std::shared_ptr<net::Protocol> inner, Random& random)
      : inner_(std::move(inner)), random_(random) {}

  size_t read(std::string_view input) override { return inner_->read(input); }
  size_t needed() const override { return inner_->needed(); }
  bool wants_input() const override { return inner_->wants_input(); }
  bool will_want_input() const override { return inner_->will_want_input(); }
  bool is_known() const override { return inner_->is_known(); }
  size_t held() const override { return inner_->held(); }
  bool go_on() override { return inner_->go_on(); }
  size_t footprint() const override { return inner_->footprint(); }
  bool is_amid_request() const override { return inner_->is_amid_request(); }
  uint64_t requests() const override { return inner_->requests(); }
  void time_out() override { inner_->time_out(); }
  bool is_over() const override { return inner_->is_over(); }
  bool end_input() override { return inner_->end_input(); }
  void hang_up() override { inner_->hang_up(); }
  std::string& output() override {
    std::string& out = inner_->output();
    if (out.empty()) return out;
    if (late_.empty() && random_.chance(1, 4)) {
      late_.swap(out);
    } else {
      out += late_;
      late_.clear();
    }
    return out;
  }

 private:
  std::shared_ptr<net::Protocol> inner_;
  Random& random_;
  std::string late_;
};

}  // namespace delayq::connections
