#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace delayq::bench {

struct Point {
  double x = 0;
  double y = 0;
};

/// One curve with its axes.
struct Chart {
  std::string title;
  std::string subtitle;
  std::string x_label;
  std::string y_label;
  std::vector<Point> points;
  /// Marks below the x axis; none: chosen from the points.
  std::vector<std::pair<double, std::string>> x_marks;
};

/// The chart as a document of its own, readable on light and dark pages. Values from zero up.
std::string to_svg(const Chart& chart);

/// Round numbers from 0 to at least `top`, about five of them.
std::vector<double> round_marks(double top);

/// "0", "250", "1.5k", "2M".
std::string short_number(double value);

}  // namespace delayq::bench
