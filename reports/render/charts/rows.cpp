#include "reports/render/charts/rows.h"

#include <algorithm>
#include <cmath>

namespace rematch::chart {
namespace {

constexpr double kTitleHeight = 22;
constexpr double kRowHeight = 39;
constexpr double kNameBaseline = 13;  // distance of the name's baseline from the top of its row
constexpr double kLaneTop = 19;
constexpr double kLaneHeight = 11;
constexpr double kAxisHeight = 24;
constexpr double kGap = 8;
constexpr double kInset = 6;  // room for dots at the ends of lanes
constexpr int kMaxTicks = 4;

// Returns the natural logarithm, limited to the range of an axis. For a ratio of 0 or below,
// returns the lower limit.
double logarithm(double ratio) {
  constexpr double kFarthest = 28;  // natural logarithm of about 1e12
  return ratio > 0 ? std::clamp(std::log(ratio), -kFarthest, kFarthest) : -kFarthest;
}

Axis ratio_axis(const Rows& chart) {
  std::vector<Estimate> estimates = {{0, {0, 0}}};  // makes sure that the axis contains 1
  for (const Row& row : chart.rows) {
    if (!row.dot) continue;
    const auto [low, high] = row.dot->interval.value_or(std::array{row.dot->value, row.dot->value});
    estimates.push_back({logarithm(row.dot->value), {logarithm(low), logarithm(high)}});
  }
  const Range range = range_of(estimates, std::log(2));
  const double margin = std::max(0.01, 0.04 * range.span());
  return make_axis(Quantity::kRatio, std::exp(range.low - margin), std::exp(range.high + margin),
                   kMaxTicks);
}

Axis bar_axis(const Rows& chart) {
  double largest = std::max(chart.at_least, chart.reference.value_or(0));
  for (const Row& row : chart.rows) largest = std::max(largest, row.total());
  return make_axis(chart.quantity, 0, largest, kMaxTicks);
}

void draw_words(Picture& picture, const Row& row, double top) {
  const double baseline = top + kNameBaseline;
  const double note_width = row.note.empty() ? 0 : text_width(row.note) + kGap;
  const double value_width = row.value.empty() ? 0 : text_width(row.value) + kGap;
  Label name{{0, baseline}, "", Anchor::kStart, Paint::kInk};
  name.is_bold = row.is_bold;
  name.hint = row.hint;
  double room = std::max(40.0, picture.width - note_width - value_width);
  do {  // shortens the name until it fits, because bold letters are wider than fit_text() assumes
    name.text = fit_text(row.name, room);
    room -= kGap;
  } while (extent(name).right > room + kGap && room > kGap);
  picture.add(name);
  if (!row.note.empty()) {
    picture.add_words({extent(name).right + kGap, baseline}, row.note);
  }
  picture.add(Label{{picture.width, baseline}, row.value, Anchor::kEnd, Paint::kInk});
}

void draw_segments(Picture& picture, const Row& row, const Box& lane, const Axis& axis) {
  constexpr double kSeam = 1;  // width of the gap between segments
  double value = 0;
  for (const Segment& segment : row.segments) {
    const double from = axis(value);
    value += segment.value;
    const double width = axis(value) - from;
    if (width <= 0) continue;
    const double seam = width > 3 * kSeam ? kSeam : 0;
    picture.add(
        Rectangle{{from, lane.top, from + width - seam, lane.bottom}, segment.fill, segment.hint});
  }
}

void draw_dot(Picture& picture, const Row& row, const Box& lane, const Axis& axis) {
  const Dot& dot = *row.dot;
  if (dot.interval) {
    draw_interval(picture, axis, *dot.interval, lane.middle(), Direction::kAcross, dot.paint);
  }
  picture.add(Marker{MarkerKind::kCircle,
                     {axis(dot.value), lane.middle()},
                     4.5,
                     dot.paint,
                     Paint::kSurface,
                     row.hint});
}

}  // namespace

double Row::total() const {
  double total = 0;
  for (const Segment& segment : segments) total += segment.value;
  return total;
}

bool Rows::is_empty() const {
  return std::none_of(rows.begin(), rows.end(),
                      [](const Row& row) { return row.dot || row.total() > 0; });
}

Picture draw(const Rows& chart) {
  const bool is_ratio = chart.quantity == Quantity::kRatio;
  const auto num_rows = static_cast<double>(chart.rows.size());
  const double bottom = kTitleHeight + num_rows * kRowHeight;
  Picture picture{chart.title, kColumnWidth, bottom + kAxisHeight};
  picture.legend = chart.legend;
  Axis axis = is_ratio ? ratio_axis(chart) : bar_axis(chart);
  const double inset = is_ratio ? kInset : 0;
  draw_x_axis(picture, axis, {inset, kTitleHeight, picture.width - inset, bottom},
              GridLines::kNone);
  picture.add_words({0, 12}, axis.titled(chart.axis_title));
  const std::optional<double> reference = is_ratio ? 1 : chart.reference;
  double top = kTitleHeight;
  for (const Row& row : chart.rows) {
    const Box lane{inset, top + kLaneTop, picture.width - inset, top + kLaneTop + kLaneHeight};
    draw_words(picture, row, top);
    draw_segments(picture, row, lane, axis);
    if (reference) {
      const double x = axis(*reference);
      picture.add_line({x, lane.top - 2}, {x, lane.bottom + 2},
                       is_ratio ? Paint::kAxis : Paint::kInk, 1.5);
    }
    if (row.dot) draw_dot(picture, row, lane, axis);
    top += kRowHeight;
  }
  return picture;
}

}  // namespace rematch::chart
