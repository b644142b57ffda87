// How much of the plane of peak bytes and time a front covers below a reference point: the one
// number that grows with every improvement of any point.
#pragma once

#include <cstdint>
#include <vector>

namespace rematch {

struct PlanePoint {
  std::int64_t peak_bytes = 0;
  std::int64_t time_ns = 0;
  bool operator==(const PlanePoint&) const = default;
};

// The dominated share of the rectangle from (0, 0) to the reference. Points beyond it add nothing.
double hypervolume_ratio(std::vector<PlanePoint> points, PlanePoint reference);

// Indices of at most `max_points` of an undominated front (by peak, ascending), chosen one by one
// for the area that each adds between those already there; its two ends first. Ascending.
std::vector<std::size_t> spread_points(const std::vector<PlanePoint>& front,
                                       std::size_t max_points);

// The point farthest below the line between the front's ends, both axes scaled to them: behind it
// more bytes buy little time. `front` as above, not empty.
std::size_t knee_of(const std::vector<PlanePoint>& front);

}  // namespace rematch
