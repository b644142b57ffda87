#include "reports/render/charts/axis.h"

#include <algorithm>
#include <cstdio>

#include "policies/base/format.h"

namespace rematch::chart {
namespace {

constexpr double kLabelGap = 8;
constexpr double kSmallestRatio = 1e-12;
constexpr double kTolerance = 1e-9;  // tolerance for rounding errors

struct Unit {
  const char* name;
  double size;
};

Unit unit_of(Quantity quantity, double largest) {
  static const std::vector<Unit> kBytes = {{"B", 1},
                                           {"KiB", 1024.0},
                                           {"MiB", 1048576.0},
                                           {"GiB", 1073741824.0},
                                           {"TiB", 1099511627776.0}};
  static const std::vector<Unit> kTimes = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
  if (quantity != Quantity::kBytes && quantity != Quantity::kDuration) return {"", 1};
  const std::vector<Unit>& units = quantity == Quantity::kBytes ? kBytes : kTimes;
  Unit chosen = units.front();
  for (const Unit& unit : units) {
    if (largest >= unit.size) chosen = unit;
  }
  return chosen;
}

// Returns an element of the sequence 1, 2, 5, 10, 20, ... by its index from 0. Negative indices
// give 0.5, 0.2, 0.1, ...
double one_two_five(int index) {
  constexpr std::array kFactors = {1.0, 2.0, 5.0};
  const int decade = static_cast<int>(std::floor(index / 3.0));
  return kFactors.at(static_cast<std::size_t>(index - 3 * decade)) * std::pow(10, decade);
}

// Returns the index of the largest element that is at most `value`, among the elements whose index
// is a multiple of `stride`.
int last_at_most(double value, int stride) {
  int index = stride * static_cast<int>(std::floor(3 * std::log10(value) / stride) - 1);
  while (one_two_five(index + stride) <= value * (1 + kTolerance)) index += stride;
  return index;
}

// Returns the first number of the sequence 1, 2, 5, 10, ... that is at least `least`.
double round_step(double least) {
  int index = last_at_most(least, 1);
  if (one_two_five(index) < least * (1 - kTolerance)) ++index;
  return one_two_five(index);
}

Axis linear_axis(Quantity quantity, double low, double high, int most_ticks) {
  const Unit unit = unit_of(quantity, std::max(std::abs(low), std::abs(high)));
  double step = round_step((high - low) / unit.size / std::max(1, most_ticks));
  if (quantity == Quantity::kCount) step = std::max(1.0, step);
  const double first = std::floor(low / unit.size / step + kTolerance);
  const double last = std::ceil(high / unit.size / step - kTolerance);
  const int decimals = std::max(0, static_cast<int>(std::ceil(-std::log10(step) - kTolerance)));
  Axis axis{first * step * unit.size, last * step * unit.size, {}, unit.name};
  const auto num_steps = static_cast<int>(last - first);
  for (int index = 0; index <= num_steps; ++index) {
    const double tick = (first + index) * step;
    axis.ticks.push_back({tick * unit.size, format_fixed(tick + 0.0, decimals)});
  }
  return axis;
}

// Places ticks at 1, 2 and 5 times each power of ten. If there are too many ticks, uses only powers
// of ten, then every second power, and so on.
Axis decades_axis(double low, double high, int most_ticks) {
  int first = 0;
  int last = 0;
  int stride = 1;
  for (;; stride = stride == 1 ? 3 : 2 * stride) {
    first = last_at_most(low, stride);
    last = last_at_most(high, stride);
    if (one_two_five(last) < high * (1 - kTolerance)) last += stride;
    if (last - first <= most_ticks * stride) break;
  }
  Axis axis{one_two_five(first), one_two_five(last), {}, ""};
  for (int index = first; index <= last; index += stride) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%g", one_two_five(index));
    axis.ticks.push_back({one_two_five(index), text.data()});
  }
  return axis;
}

Axis ratio_axis(double low, double high, int most_ticks) {
  // Below this ratio of `high` to `low`, a logarithmic axis looks linear.
  constexpr double kRoundNumbersBelow = 2.5;
  for (double* end : {&low, &high}) *end = std::clamp(*end, kSmallestRatio, 1 / kSmallestRatio);
  if (high / low < 1 + kTolerance) {
    low *= 0.95;
    high *= 1.05;
  }
  Axis axis = linear_axis(Quantity::kRatio, low, high, most_ticks);
  if (high / low >= kRoundNumbersBelow || axis.low <= 0) axis = decades_axis(low, high, most_ticks);
  axis.is_logarithmic = true;
  return axis;
}

}  // namespace

double Axis::operator()(double value) const {
  const double part = !is_logarithmic ? (value - low) / (high - low)
                      : value <= low  ? 0
                                      : std::log(value / low) / std::log(high / low);
  return start + std::clamp(part, 0.0, 1.0) * (end - start);
}

std::string Axis::titled(const std::string& words) const {
  return words + (words.empty() || unit.empty() ? "" : ", ") + unit;
}

Axis make_axis(Quantity quantity, double low, double high, int most_ticks) {
  most_ticks = std::max(1, most_ticks);
  if (!std::isfinite(low) || !std::isfinite(high)) low = high = 0;
  if (low > high) std::swap(low, high);
  if (quantity == Quantity::kRatio) return ratio_axis(low, high, most_ticks);
  if (high - low <= kTolerance * std::max(std::abs(low), std::abs(high))) {
    const double margin = std::max(0.05 * std::abs(high), quantity == Quantity::kNumber ? 1e-6 : 1);
    low = low >= 0 ? std::max(0.0, low - margin) : low - margin;
    high += margin;
  }
  return linear_axis(quantity, low, high, most_ticks);
}

void Range::include(double value) {
  low = std::min(low, value);
  high = std::max(high, value);
}

Range range_of(const std::vector<Estimate>& estimates, double most_room) {
  Range range;
  std::vector<double> reaches;
  for (const auto& [value, interval] : estimates) {
    range.include(value);
    reaches.push_back(std::max({0.0, value - interval[0], interval[1] - value}));
  }
  if (reaches.empty()) return range;
  const auto middle = reaches.begin() + static_cast<std::ptrdiff_t>(reaches.size() / 2);
  std::nth_element(reaches.begin(), middle, reaches.end());
  const double room = std::max(range.span() / 2, std::min(2 * *middle, most_room));
  const Range most{range.low - room, range.high + room};
  for (const auto& [value, interval] : estimates) {
    range.include(std::max(most.low, interval[0]));
    range.include(std::min(most.high, interval[1]));
  }
  return range;
}

void draw_interval(Picture& picture, const Axis& axis, const std::array<double, 2>& interval,
                   double across, Direction direction, Paint paint) {
  constexpr double kHalf = 4;  // half the width of an error bar's cap, or of an arrow's base
  constexpr double kArrow = 7;
  constexpr double kWidth = 1.5;
  const std::array ends = {axis(interval[0]), axis(interval[1])};
  if (ends[0] == ends[1]) return;
  const auto at = [&](double along, double aside) {
    return direction == Direction::kUpright ? Position{across + aside, along}
                                            : Position{along, across + aside};
  };
  picture.add_line(at(ends[0], 0), at(ends[1], 0), paint, kWidth);
  for (const std::size_t index : {0, 1}) {
    const double end = ends.at(index);
    if (axis.holds(interval.at(index))) {
      picture.add_line(at(end, -kHalf), at(end, kHalf), paint, kWidth);
      continue;
    }
    const double foot = end + (end < ends.at(1 - index) ? kArrow : -kArrow);
    picture.add(Path{{at(end, 0), at(foot, -kHalf), at(foot, kHalf)}, Paint::kClear, paint});
  }
}

double y_labels_width(const Axis& axis, double growth) {
  double widest = 0;
  for (const Tick& tick : axis.ticks) widest = std::max(widest, text_width(tick.text));
  return widest * growth + kLabelGap;
}

void draw_x_axis(Picture& picture, Axis& axis, const Box& area, GridLines lines) {
  constexpr double kMinSpace = 6;  // smallest distance between two labels
  axis.start = area.left;
  axis.end = area.right;
  double free_from = 0;
  for (const Tick& tick : axis.ticks) {
    const double x = axis(tick.value);
    if (lines == GridLines::kDrawn) {
      picture.add_line({x, area.top}, {x, area.bottom}, Paint::kGrid);
    }
    // Keeps the outermost labels inside the picture.
    const double half = text_width(tick.text) * picture.growth / 2;
    const double middle = std::clamp(x, half, std::max(half, picture.width - half));
    if (middle - half < free_from) continue;
    free_from = middle + half + kMinSpace;
    picture.add_words({middle, area.bottom + kLabelsBelow * picture.growth}, tick.text,
                      Anchor::kMiddle);
  }
}

void draw_y_axis(Picture& picture, Axis& axis, const Box& area) {
  axis.start = area.bottom;
  axis.end = area.top;
  double free_below = area.bottom + kTextSize * picture.growth;
  for (const Tick& tick : axis.ticks) {
    const double y = axis(tick.value);
    picture.add_line({area.left, y}, {area.right, y}, Paint::kGrid);
    const Label label{
        {area.left - kLabelGap, y}, tick.text, Anchor::kEnd, Paint::kMuted, kCentered};
    const Box box = extent(label, picture.growth);
    if (box.bottom > free_below) continue;
    free_below = box.top;
    picture.add(label);
  }
}

void draw_axes(Picture& picture, Plot& plot, double left, const std::string& y_title,
               const std::string& x_title, GridLines lines, double foot) {
  const Box& area = plot.area;
  picture.add_words({left, area.top - 12}, plot.y.titled(y_title));
  draw_y_axis(picture, plot.y, area);
  draw_x_axis(picture, plot.x, {area.left, area.top, area.right, area.bottom + foot}, lines);
  picture.add_words({area.right, area.bottom + foot + kTitleBelow}, x_title, Anchor::kEnd);
}

}  // namespace rematch::chart
