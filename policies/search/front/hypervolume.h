// How much of the plane of peak bytes and time a front covers below a reference point: the one
// number that grows with every improvement of any point.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

namespace rematch {

struct PlanePoint {
  std::int64_t peak_bytes = 0;
  std::int64_t time_ns = 0;
  bool operator==(const PlanePoint&) const = default;
};

// Those of `all` that are faster than every smaller one, by peak ascending; of equal ones the
// first. `place`: an item's PlanePoint.
template <class Item, class Place>
std::vector<Item> undominated(std::vector<Item> all, const Place& place) {
  std::stable_sort(all.begin(), all.end(), [&](const Item& a, const Item& b) {
    const PlanePoint x = place(a);
    const PlanePoint y = place(b);
    return std::tie(x.peak_bytes, x.time_ns) < std::tie(y.peak_bytes, y.time_ns);
  });
  std::vector<Item> kept;
  for (Item& item : all) {
    if (kept.empty() || place(item).time_ns < place(kept.back()).time_ns) {
      kept.push_back(std::move(item));
    }
  }
  return kept;
}

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
