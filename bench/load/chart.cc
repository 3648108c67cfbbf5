#include "bench/load/chart.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace delayq::bench {

namespace {

constexpr double kWidth = 800;
constexpr double kHeight = 420;
constexpr double kLeft = 70;
constexpr double kRight = 32;
constexpr double kTop = 84;
constexpr double kBottom = 52;

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string text(double x, double y, std::string_view anchor, std::string_view look, std::string_view words) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" class=\"{}\">{}</text>\n", x, y,
                     anchor, look, escaped(words));
}

/// From values to places in the picture.
struct Scale {
  double x_top = 1;
  double y_top = 1;

  double x(double value) const { return kLeft + value / x_top * (kWidth - kLeft - kRight); }
  double y(double value) const { return kHeight - kBottom - value / y_top * (kHeight - kTop - kBottom); }
};

std::string axes(const Chart& chart, const Scale& scale, const std::vector<double>& y_marks) {
  std::string out;
  for (const double mark : y_marks) {
    out += fmt::format("<line x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\" class=\"grid\"/>\n",
                       kLeft, kWidth - kRight, scale.y(mark), scale.y(mark));
    out += text(kLeft - 8, scale.y(mark) + 4, "end", "mark", short_number(mark));
  }
  for (const auto& [place, words] : chart.x_marks)
    out += text(scale.x(place), kHeight - kBottom + 18, "middle", "mark", words);
  out += text((kLeft + kWidth - kRight) / 2, kHeight - 12, "middle", "mark", chart.x_label);
  out += text(kLeft, kTop - 14, "start", "mark", chart.y_label);
  return out;
}

}  // namespace

std::vector<double> round_marks(double top) {
  if (!(top > 0)) return {0, 1};
  const double rough = top / 5;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) {
      step = factor * power;
      break;
    }
  }
  std::vector<double> marks{0};
  while (marks.back() < top) marks.push_back(static_cast<double>(marks.size()) * step);
  return marks;
}

std::string short_number(double value) {
  if (value >= 1e6) return fmt::format("{:g}M", value / 1e6);
  if (value >= 1e3) return fmt::format("{:g}k", value / 1e3);
  return fmt::format("{:g}", std::round(value * 1e6) / 1e6);
}

std::string to_svg(const Chart& given) {
  Chart chart = given;
  Scale scale;
  double x_top = 0;
  double y_top = 0;
  for (const Point& point : chart.points) {
    x_top = std::max(x_top, point.x);
    y_top = std::max(y_top, point.y);
  }
  const std::vector<double> y_marks = round_marks(y_top);
  scale.y_top = y_marks.back();
  scale.x_top = x_top > 0 ? x_top : 1;
  if (chart.x_marks.empty()) {
    for (const double mark : round_marks(x_top)) {
      if (mark <= scale.x_top) chart.x_marks.emplace_back(mark, short_number(mark));
    }
  }
  std::string path;
  for (const Point& point : chart.points)
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : " L", scale.x(point.x), scale.y(point.y));
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
             "height=\"{1}\">\n"
             "<style>text{{font-family:system-ui,sans-serif;fill:#555}} "
             ".title{{font-size:18px;font-weight:600}} "
             ".mark{{font-size:12px}} .grid{{stroke:#8884;stroke-width:1}} "
             ".curve{{fill:none;stroke:#2563eb;stroke-width:2;stroke-linejoin:round}} "
             "@media (prefers-color-scheme: dark){{text{{fill:#bbb}} .curve{{stroke:#60a5fa}}}}</style>\n",
             kWidth, kHeight) +
         text(kLeft, 24, "start", "title", chart.title) + text(kLeft, 42, "start", "mark", chart.subtitle) +
         axes(chart, scale, y_marks) + fmt::format("<path class=\"curve\" d=\"{}\"/>\n</svg>\n", path);
}

}  // namespace delayq::bench
