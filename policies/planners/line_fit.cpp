#include "policies/planners/line_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace rematch {
namespace {

constexpr int kUnknowns = 3;
using Row = std::array<double, kUnknowns + 1>;

// Solves the normal equations for the first `count` unknowns. An unknown that the equations do not
// determine becomes 0.
std::array<double, kUnknowns> solve(std::array<Row, kUnknowns> rows, int count) {
  std::array<double, kUnknowns> unknowns{};
  constexpr double kNothing = 1e-14;
  for (int pivot = 0; pivot < count; ++pivot) {
    int best = pivot;
    for (int row = pivot; row < count; ++row) {
      if (std::abs(rows[row][pivot]) > std::abs(rows[best][pivot])) best = row;
    }
    std::swap(rows[pivot], rows[best]);
    if (std::abs(rows[pivot][pivot]) < kNothing) return solve(rows, count - 1);
    for (int row = 0; row < count; ++row) {
      if (row == pivot) continue;
      const double factor = rows[row][pivot] / rows[pivot][pivot];
      for (int column = pivot; column <= kUnknowns; ++column) {
        rows[row][column] -= factor * rows[pivot][column];
      }
    }
  }
  for (int row = 0; row < count; ++row) unknowns[row] = rows[row][kUnknowns] / rows[row][row];
  return unknowns;
}

struct Fit {
  double knee = 0;
  std::array<double, kUnknowns> unknowns{};  // height, slope, change of slope at the knee
  double squares = std::numeric_limits<double>::infinity();
};

std::array<double, kUnknowns> terms_at(double x, double knee) {
  return {1, x, std::max(0.0, x - knee)};
}

Fit fit_with_knee(const std::vector<FittedPoint>& points, double knee, int count) {
  std::array<Row, kUnknowns> rows{};
  for (const FittedPoint& point : points) {
    const auto terms = terms_at(point.x, knee);
    for (int row = 0; row < kUnknowns; ++row) {
      for (int column = 0; column < kUnknowns; ++column) {
        rows[row][column] += terms[row] * terms[column];
      }
      rows[row][kUnknowns] += terms[row] * point.y;
    }
  }
  Fit fit{knee, solve(rows, count), 0};
  for (const FittedPoint& point : points) {
    const auto terms = terms_at(point.x, knee);
    double off = -point.y;
    for (int term = 0; term < count; ++term) off += fit.unknowns[term] * terms[term];
    fit.squares += off * off;
  }
  return fit;
}

}  // namespace

std::vector<FittedLine> fit_two_lines(const std::vector<FittedPoint>& points) {
  constexpr std::size_t kFewest = 4;
  constexpr int kLine = 2;
  if (points.size() < kFewest) {
    const Fit fit = fit_with_knee(points, points.back().x, kLine);
    return {{fit.unknowns[1], fit.unknowns[0]}};
  }
  // The sum of squares is not convex in the knee, so many knees are tried in each gap between
  // points.
  constexpr int kTries = 200;
  Fit best;
  for (std::size_t i = 1; i < points.size(); ++i) {
    for (int step = 0; step <= kTries; ++step) {
      const double knee = points[i - 1].x + (points[i].x - points[i - 1].x) * step / kTries;
      const Fit fit = fit_with_knee(points, knee, kUnknowns);
      if (fit.squares < best.squares) best = fit;
    }
  }
  const double slope = best.unknowns[1] + best.unknowns[2];
  return {{best.unknowns[1], best.unknowns[0]},
          {slope, best.unknowns[0] - best.unknowns[2] * best.knee}};
}

}  // namespace rematch
