#include "reports/render/charts/placement.h"

#include <algorithm>
#include <array>

namespace rematch {
namespace {

// Beside the marker, and a line of text further out where that is taken.
constexpr std::array kDistances = {0.0, 10.0};

// The eight places around a point, the easiest to read first: right, left, above, below, corners.
std::array<Box, 8> places_around(const LabelRequest& request, double distance) {
  const auto [x, y] = request.point;
  const double gap = request.clearance + distance;
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

std::optional<Box> free_place(const LabelRequest& request, const std::vector<Box>& obstacles,
                              const Box& bounds) {
  for (const double distance : kDistances) {
    for (const Box& place : places_around(request, distance)) {
      if (bounds.contains(place) && is_free(place, obstacles)) return place;
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::optional<Box>> place_labels(const std::vector<LabelRequest>& requests,
                                             std::vector<Box> obstacles, const Box& bounds) {
  std::vector<std::optional<Box>> placed;
  for (const LabelRequest& request : requests) {
    placed.push_back(free_place(request, obstacles, bounds));
    if (placed.back()) obstacles.push_back(*placed.back());
  }
  return placed;
}

}  // namespace rematch
