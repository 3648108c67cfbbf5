#include "delivery/webhook/call_book.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace delayq::webhook {

void CallBook::note(Moment now, const std::string& host, const CallResult& result, bool failed) {
  auto found = hosts_.find(host);
  if (found == hosts_.end()) {
    if (hosts_.size() >= kMostHosts) {
      hosts_.erase(std::min_element(hosts_.begin(), hosts_.end(), [](const auto& a, const auto& b) {
        return a.second.last_call < b.second.last_call;
      }));
    }
    found = hosts_.emplace(host, Entry{}).first;
  }
  Entry& entry = found->second;
  ++entry.calls;
  entry.failed += failed ? 1 : 0;
  entry.micros.record(static_cast<uint64_t>(std::max<int64_t>(0, result.took.count())));
  entry.last_call = now;
}

void CallBook::note_failure(PastFailure failure) {
  if (failures_.size() >= kMostFailures) failures_.pop_back();
  failures_.push_front(std::move(failure));
}

CallbackReport CallBook::report(absl::FunctionRef<HostView(const std::string& host)> look,
                                size_t limit) const {
  CallbackReport report;
  report.hosts.reserve(hosts_.size());
  for (const auto& [name, entry] : hosts_)
    report.hosts.push_back({name, look(name), 0, entry.calls, entry.failed, entry.micros, entry.last_call});
  const size_t count = std::min(limit, report.hosts.size());
  const auto rank = [](const HostReport& host) {
    return std::tuple(host.gate.breaker == Breaker::kClosed, host.gate.failures == 0, UINT64_MAX - host.calls,
                      std::string_view(host.host));
  };
  std::partial_sort(report.hosts.begin(), report.hosts.begin() + static_cast<ptrdiff_t>(count),
                    report.hosts.end(),
                    [&](const HostReport& a, const HostReport& b) { return rank(a) < rank(b); });
  report.hosts.resize(count);
  const size_t failures = std::min(limit, failures_.size());
  report.failures.assign(failures_.begin(), failures_.begin() + static_cast<ptrdiff_t>(failures));
  return report;
}

}  // namespace delayq::webhook
