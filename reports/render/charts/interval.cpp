#include "reports/render/charts/interval.h"

#include <algorithm>
#include <cmath>

namespace rematch {
namespace {

constexpr double kCap = 4;  // of each half of a cap or of an arrow's foot
constexpr double kArrow = 7;

// `to` is the direction in which the interval ends, one unit long.
void draw_end(Picture& picture, const IntervalEnd& end, Position to, const IntervalBar& interval) {
  const auto [x, y] = end.at;
  if (end.is_on_axis) {
    picture.add(Line{{x - kCap * to.y, y - kCap * to.x},
                     {x + kCap * to.y, y + kCap * to.x},
                     interval.paint,
                     interval.width});
    return;
  }
  const Position foot{x - kArrow * to.x, y - kArrow * to.y};
  picture.add(Path{{end.at,
                    {foot.x - kCap * to.y, foot.y - kCap * to.x},
                    {foot.x + kCap * to.y, foot.y + kCap * to.x}},
                   interval.paint,
                   Paint::kClear});
}

}  // namespace

Box draw_interval(Picture& picture, const IntervalBar& interval) {
  const Position& low = interval.low.at;
  const Position& high = interval.high.at;
  const double length = std::hypot(high.x - low.x, high.y - low.y);
  if (length == 0) return {low.x, low.y, low.x, low.y};
  const Position up{(high.x - low.x) / length, (high.y - low.y) / length};
  picture.add(Line{low, high, interval.paint, interval.width});
  draw_end(picture, interval.low, {-up.x, -up.y}, interval);
  draw_end(picture, interval.high, up, interval);
  const double across = kCap * std::abs(up.y);
  const double along = kCap * std::abs(up.x);
  return {std::min(low.x, high.x) - across, std::min(low.y, high.y) - along,
          std::max(low.x, high.x) + across, std::max(low.y, high.y) + along};
}

double room_for_intervals(double span, std::vector<double> reaches, double most) {
  if (reaches.empty()) return 0;
  const auto middle = reaches.begin() + static_cast<std::ptrdiff_t>(reaches.size() / 2);
  std::nth_element(reaches.begin(), middle, reaches.end());
  return std::max(span / 2, std::min(2 * *middle, most));
}

}  // namespace rematch
