#include "bench/load/report.h"

#include <cmath>

#include <fmt/format.h>

#include "bench/load/chart.h"

namespace delayq::bench {

namespace {

bool is_dated(const Report& report) {
  return report.options.scenario == Scenario::kLateness || report.options.scenario == Scenario::kSpike;
}

std::string_view what_is_timed(Scenario scenario) {
  switch (scenario) {
    case Scenario::kLife:
      return "a whole life";
    case Scenario::kDrain:
      return "a POP";
    case Scenario::kLateness:
    case Scenario::kSpike:
      return "hand-over minus due";
    default:
      return "a request";
  }
}

double ms(const Report& report, double share) { return to_ms(report.result.latency.percentile(share)); }

/// 99.9 % is as far from 99 % as that is from 90 %: the tail is what one looks at.
double tail_place(double share) { return -std::log10(1 - share); }

Chart percentile_chart(const Report& report) {
  Chart chart;
  chart.y_label = fmt::format("ms, {}", what_is_timed(report.options.scenario));
  chart.x_label = "percentile";
  for (const double share : {0.0, 0.5, 0.9, 0.99, 0.999, 0.9999})
    chart.x_marks.emplace_back(tail_place(share), fmt::format("{:g}", share * 100));
  constexpr int kSteps = 200;
  for (int i = 0; i <= kSteps; ++i) {
    const double place = tail_place(0.9999) * i / kSteps;
    chart.points.push_back({place, ms(report, 1 - std::pow(10, -place))});
  }
  return chart;
}

Chart throughput_chart(const Report& report) {
  Chart chart;
  chart.y_label = "per second";
  chart.x_label = "seconds";
  const double step = std::chrono::duration<double>(LoadResult::kTimelineStep).count();
  for (size_t i = 0; i < report.result.timeline.size(); ++i) {
    chart.points.push_back(
        {(static_cast<double>(i) + 0.5) * step, static_cast<double>(report.result.timeline[i]) / step});
  }
  // The last step is cut short by the end.
  if (chart.points.size() > 2) chart.points.pop_back();
  return chart;
}

}  // namespace

double Report::ops_per_s() const {
  return result.seconds > 0 ? static_cast<double>(result.answered) / result.seconds : 0;
}

std::string to_json(const Report& report) {
  const LoadOptions& options = report.options;
  std::string out = fmt::format(
      "{{\"scenario\":\"{}\",\"jobs\":{},\"connections\":{},\"pipeline\":{},\"body\":{},\"topics\":{},"
      "\"answered\":{},\"seconds\":{:.6f},\"ops_per_s\":{:.1f},\"p50_ms\":{:.4f},\"p99_ms\":{:.4f},"
      "\"p999_ms\":{:.4f},\"max_ms\":{:.4f},\"errors\":{},\"prepare_seconds\":{:.3f}",
      name_of(options.scenario), options.jobs.value_or(0), options.connections, options.pipeline,
      options.body, options.topics, report.result.answered, report.result.seconds, report.ops_per_s(),
      ms(report, 0.5), ms(report, 0.99), ms(report, 0.999), to_ms(report.result.latency.max()),
      report.result.errors, report.prepare_seconds);
  if (is_dated(report)) out += fmt::format(",\"early\":{}", report.result.early);
  if (report.last_hand_over) out += fmt::format(",\"last_hand_over_s\":{:.6f}", *report.last_hand_over);
  return out + "}\n";
}

std::string to_table(const Report& report) {
  const LoadOptions& options = report.options;
  const LoadResult& result = report.result;
  std::string out =
      fmt::format("{}: {} jobs, {} connections x {} under way, bodies of {} B, {} topic{}\n",
                  name_of(options.scenario), options.jobs.value_or(0), options.connections, options.pipeline,
                  options.body, options.topics, options.topics == 1 ? "" : "s");
  if (options.scenario != Scenario::kPush && options.scenario != Scenario::kLife)
    out += fmt::format("pushed before that, in {:.2f} s\n", report.prepare_seconds);
  if (options.consumers.value_or(0) > 0)
    out += fmt::format("{} consumers, up to {} jobs a POP\n", *options.consumers, options.count.value_or(1));
  out += fmt::format("\n{:>12} {:>9} {:>12}   {:<20} {:>9} {:>9} {:>9} {:>9}\n", "answered", "seconds",
                     "per second", "in ms", "p50", "p99", "p99.9", "max");
  out += fmt::format("{:>12} {:>9.2f} {:>12.0f}   {:<20} {:>9.3f} {:>9.3f} {:>9.3f} {:>9.3f}\n",
                     result.answered, result.seconds, report.ops_per_s(), what_is_timed(options.scenario),
                     ms(report, 0.5), ms(report, 0.99), ms(report, 0.999), to_ms(result.latency.max()));
  if (report.last_hand_over)
    out += fmt::format("the last was handed over {:.3f} s after the moment\n", *report.last_hand_over);
  if (is_dated(report)) out += fmt::format("early: {}\n", result.early);
  out += fmt::format("errors: {}{}\n", result.errors,
                     result.first_error.empty() ? "" : fmt::format(", the first: {}", result.first_error));
  return out;
}

std::string to_plot(const Report& report) {
  Chart chart = is_dated(report) ? percentile_chart(report) : throughput_chart(report);
  chart.title = fmt::format("delayq bench {}", name_of(report.options.scenario));
  chart.subtitle = fmt::format("{} jobs, {:.0f} per second, p50 {:.2f} ms, p99 {:.2f} ms, max {:.2f} ms",
                               report.result.answered, report.ops_per_s(), ms(report, 0.5), ms(report, 0.99),
                               to_ms(report.result.latency.max()));
  return to_svg(chart);
}

}  // namespace delayq::bench
