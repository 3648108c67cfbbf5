#pragma once

#include <functional>

#include <boost/asio/signal_set.hpp>

#include "net/loop.h"

namespace delayq::net {

/// Tells of signals, on the loop's thread, for as long as it lives.
class Signals {
 public:
  Signals(Loop& loop, std::initializer_list<int> numbers, std::function<void(int)> tell);

 private:
  void wait();

  boost::asio::signal_set set_;
  std::function<void(int)> tell_;
};

}  // namespace delayq::net
