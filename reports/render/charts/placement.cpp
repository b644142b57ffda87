#include "reports/render/charts/placement.h"

#include <algorithm>
#include <array>

namespace rematch {
namespace {

// The eight places around a point, the easiest to read first: right, left, above, below, corners.
std::array<Box, 8> places_around(const LabelRequest& request) {
  const auto [x, y] = request.point;
  const double gap = request.clearance;
  const double width = request.width;
  const double height = request.height;
  const auto at = [&](double left, double top) {
    return Box{left, top, left + width, top + height};
  };
  const double diagonal = gap * 0.7;
  return {at(x + gap, y - height / 2),
          at(x - gap - width, y - height / 2),
          at(x - width / 2, y - gap - height),
          at(x - width / 2, y + gap),
          at(x + diagonal, y - diagonal - height),
          at(x + diagonal, y + diagonal),
          at(x - diagonal - width, y - diagonal - height),
          at(x - diagonal - width, y + diagonal)};
}

bool is_free(const Box& place, const std::vector<Box>& obstacles) {
  return std::none_of(obstacles.begin(), obstacles.end(),
                      [&place](const Box& other) { return other.overlaps(place); });
}

}  // namespace

std::vector<std::optional<Box>> place_labels(const std::vector<LabelRequest>& requests,
                                             std::vector<Box> obstacles,
                                             const std::vector<Box>& lines, const Box& bounds) {
  std::vector<std::optional<Box>> placed;
  for (const LabelRequest& request : requests) {
    std::optional<Box> found;
    for (const Box& place : places_around(request)) {
      if (!bounds.contains(place) || !is_free(place, obstacles)) continue;
      const bool clear = is_free(place, lines);
      if (clear || !found) found = place;
      if (clear) break;
    }
    if (found) obstacles.push_back(*found);
    placed.push_back(found);
  }
  return placed;
}

}  // namespace rematch
