#pragma once

#include <functional>

namespace delayq {

/// Does `work` in a process of its own, without a terminal, and waits until that calls the function it was
/// given: it is ready. Answers, in the process that called, 0 then; or what `work` answered when it ended
/// before. Until it is ready `work` has the caller's standard output and error, to say what is wrong; then
/// they lead nowhere. The working directory stays. REQUIRES: no other threads.
int run_in_background(const std::function<int(const std::function<void()>& tell_ready)>& work);

}  // namespace delayq
