// Treats plans as points (peak bytes, time). The hypervolume of a front is the share of the area
// below a reference point that the front dominates.
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

// Returns the Pareto-optimal items, sorted by ascending peak. Keeps the first of equal items.
// `place` returns an item's PlanePoint.
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

// Returns the share of the rectangle from (0, 0) to the reference point that is dominated by the
// points. Points beyond the reference add nothing.
double hypervolume_ratio(std::vector<PlanePoint> points, PlanePoint reference);

// Returns ascending indices of at most `max_points` points of a front. The front must be
// undominated and sorted by ascending peak. Chooses both ends first, and then repeatedly the point
// that adds the most area.
std::vector<std::size_t> spread_points(const std::vector<PlanePoint>& front,
                                       std::size_t max_points);

// Returns the knee: the point farthest below the line between the front's ends, with both axes
// scaled to these ends. Beyond the knee, additional bytes save little time. `front` is sorted by
// ascending peak and not empty.
std::size_t knee_of(const std::vector<PlanePoint>& front);

}  // namespace rematch
