#pragma once

#include <array>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "core/histogram.h"

namespace delayq::http {

/// Appends metrics as Prometheus reads them (text format 0.0.4).
class Exposition {
 public:
  explicit Exposition(std::string& out) : out_(out) {}

  /// Begins a metric; `type` is counter, gauge or histogram.
  void begin(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    append("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }

  /// `labels` as label() makes them; may be empty.
  template <class Value>
  void sample(std::string_view labels, Value value) {
    if (labels.empty()) return append("{} {}\n", name_, value);
    append("{}{{{}}} {}\n", name_, labels, value);
  }

  /// A metric with one sample.
  template <class Value>
  void one(std::string_view name, std::string_view type, std::string_view help, Value value) {
    begin(name, type, help);
    sample({}, value);
  }

  /// A whole histogram; a value of 1 in it is 1 / `scale` of the metric's unit.
  template <size_t kSize>
  void histogram(std::string_view name, std::string_view help, const std::array<uint64_t, kSize>& buckets,
                 uint64_t sum, double scale) {
    begin(name, "histogram", help);
    uint64_t seen = 0;
    for (size_t i = 0; i + 1 < kSize; ++i) {
      seen += buckets[i];
      append("{}_bucket{{le=\"{}\"}} {}\n", name,
             static_cast<double>(Histogram<kSize>::upper_bound(i)) / scale, seen);
    }
    seen += buckets[kSize - 1];
    append("{0}_bucket{{le=\"+Inf\"}} {1}\n{0}_sum {2}\n{0}_count {1}\n", name, seen,
           static_cast<double>(sum) / scale);
  }

  /// key="value", with what must be escaped.
  static std::string label(std::string_view key, std::string_view value) {
    std::string text = fmt::format("{}=\"", key);
    for (const char c : value) {
      if (c == '\\' || c == '"') text += '\\';
      text += c == '\n' ? ' ' : c;
    }
    return text += '"';
  }

 private:
  template <class... Values>
  void append(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Values>(values)...);
  }

  std::string& out_;
  std::string_view name_;
};

}  // namespace delayq::http
