#include "net/signals.h"

#include <utility>

namespace delayq::net {

Signals::Signals(Loop& loop, std::initializer_list<int> numbers, std::function<void(int)> tell)
    : set_(loop.context()), tell_(std::move(tell)) {
  for (const int number : numbers) set_.add(number);
  wait();
}

void Signals::wait() {
  set_.async_wait([this](const boost::system::error_code& problem, int number) {
    if (problem) return;
    tell_(number);
    wait();
  });
}

}  // namespace delayq::net
