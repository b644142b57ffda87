// Fits two lines that meet at a point (the knee) to data, with the least sum of squares.
#pragma once

#include <vector>

namespace rematch {

struct FittedLine {
  double slope = 0;
  double intercept = 0;
};

struct FittedPoint {
  double x = 0;
  double y = 0;
};

// `points` must be sorted by ascending x, with at least two different values of x. Returns one line
// for fewer than four points.
std::vector<FittedLine> fit_two_lines(const std::vector<FittedPoint>& points);

}  // namespace rematch
