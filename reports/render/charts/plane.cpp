#include "reports/render/charts/plane.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "policies/base/format.h"
#include "reports/render/charts/lines.h"
#include "reports/render/charts/names.h"
#include "reports/render/charts/rows.h"

namespace rematch::chart {
namespace {

constexpr double kWidth = 660;
constexpr double kHeight = 300;  // height of the plot
constexpr double kTop = 28;
constexpr double kRight = 14;
constexpr double kRadius = 5;
constexpr double kSquareRadius = 4.4;
constexpr double kClearance = kRadius * kGrowth + 4;  // distance from a marker's middle to its name
// A limit is drawn only if it differs from the spots' peaks by at most this factor. Otherwise the
// spots would be squeezed together.
constexpr double kNearLimit = 1.6;
// The maximum width of a name, as a fraction of the plot's width.
constexpr double kLongestName = 0.45;

Range peaks_of(const Plane& chart) {
  Range peaks;
  for (const Spot& spot : chart.spots) {
    for (const auto& at : {spot.predicted, spot.measured}) {
      if (at) peaks.include(at->x);
    }
  }
  return peaks;
}

Range steps_of(const Plane& chart) {
  // If all step times are similar, the axis is extended by at most this fraction of the slowest
  // step, to show their intervals.
  constexpr double kMinRoom = 0.02;
  double slowest = 0;
  std::vector<Estimate> steps;
  for (const Spot& spot : chart.spots) {
    if (spot.predicted)
      steps.push_back({spot.predicted->y, {spot.predicted->y, spot.predicted->y}});
    const double step = spot.at().y;
    steps.push_back({step, spot.interval.value_or(std::array{step, step})});
    slowest = std::max(slowest, step);
  }
  return range_of(steps, kMinRoom * slowest);
}

// Returns text such as "far to the right"; empty if the limit is near enough to be drawn.
std::string far_side(const Limit& limit, const Range& peaks) {
  const auto bytes = static_cast<double>(limit.bytes.count);
  if (bytes > kNearLimit * peaks.high) return "far to the right";
  return bytes * kNearLimit < peaks.low ? "far to the left" : "";
}

Axis axis_of(Quantity quantity, const Range& range, int most_ticks) {
  const double margin = 0.04 * range.span();  // distance of markers from the frame
  return make_axis(quantity, std::max(0.0, range.low - margin), range.high + margin, most_ticks);
}

Plot draw_frame(Picture& picture, const Range& peaks, const Range& steps) {
  const double growth = picture.growth;
  Plot plot{{}, axis_of(Quantity::kBytes, peaks, 6), axis_of(Quantity::kDuration, steps, 6)};
  plot.area = {y_labels_width(plot.y, growth), kTop, kWidth - kRight, kTop + kHeight};
  draw_y_axis(picture, plot.y, plot.area);
  draw_x_axis(picture, plot.x, plot.area, GridLines::kDrawn);
  const double bottom = plot.area.bottom;
  picture.add_line({plot.area.left, bottom}, {plot.area.right, bottom}, Paint::kAxis);
  picture.add(Label{{0, kTop - 12}, plot.y.titled("Step time")});
  picture.add(Label{{plot.area.right, bottom + kTitleBelow * growth},
                    plot.x.titled("Peak allocated"),
                    Anchor::kEnd});
  picture.height = bottom + (kTitleBelow + 5) * growth;
  return plot;
}

void draw_limit(Picture& picture, const Limit& limit, const Range& peaks, const Plot& plot) {
  std::string words = limit.name + " " + format_bytes(limit.bytes);
  const std::string side = far_side(limit, peaks);
  if (!side.empty()) words += ", " + side;
  picture.legend.push_back({words, MarkerKind::kSquare, Paint::kOrange});
  if (!side.empty()) return;
  const double x = plot.x(static_cast<double>(limit.bytes.count));
  picture.add(Path{{{x, plot.area.top}, {x, plot.area.bottom}},
                   Paint::kOrange,
                   Paint::kClear,
                   1.5,
                   true,
                   words});
}

void draw_steps(Picture& picture, const std::vector<Position>& corners) {
  picture.add(Path{corners, Paint::kBlue, Paint::kClear, 1, /*is_dashed=*/true});
}

// Splits the staircase of a front into steps. A step has three points: a horizontal line joins the
// first two, and a vertical line joins the last two.
std::vector<std::array<Position, 3>> steps_through(std::vector<Position> corners,
                                                   const Plot& plot) {
  std::sort(corners.begin(), corners.end(),
            [](const Position& a, const Position& b) { return a.x < b.x; });
  std::vector<std::array<Position, 3>> steps;
  for (std::size_t next = 1; next < corners.size(); ++next) {
    const Position from = plot(corners[next - 1]);
    const Position to = plot(corners[next]);
    steps.push_back({from, {to.x, from.y}, to});
  }
  return steps;
}

void draw_spots(Picture& picture, const std::vector<const Spot*>& spots, const Plot& plot) {
  for (const Spot* spot : spots) {
    if (spot->interval) {
      draw_interval(picture, plot.y, *spot->interval, plot.x(spot->at().x), Direction::kUpright,
                    spot->paint);
    }
    if (spot->predicted && spot->measured) {
      picture.add_line(plot(*spot->predicted), plot(*spot->measured), spot->paint);
    }
  }
  for (const Spot* spot : spots) {
    const double radius = spot->kind == MarkerKind::kCircle ? kRadius : kSquareRadius;
    if (spot->predicted) {
      picture.add(Marker{spot->kind, plot(*spot->predicted), radius, Paint::kSurface, spot->paint,
                         spot->hint});
    }
    if (spot->measured) {
      picture.add(Marker{spot->kind, plot(*spot->measured), radius, spot->paint, Paint::kSurface,
                         spot->hint});
    }
    if (spot->is_crossed) {
      picture.add(Marker{MarkerKind::kCross, plot(spot->at()), kRadius + 2.5, Paint::kClear,
                         Paint::kOrange, spot->hint});
    }
  }
}

// Returns the names of the spots, in the given order. Spots with the same position and colour share
// a name: "nth_first(2), first_n(16)".
std::vector<Name> names_of(const std::vector<const Spot*>& spots, const Plot& plot) {
  std::vector<Name> names;
  std::map<std::tuple<double, double, Paint>, std::size_t> known;
  for (const Spot* spot : spots) {
    const Position at = plot(spot->at());
    const auto [found, is_new] = known.try_emplace({at.x, at.y, spot->name_paint}, names.size());
    if (!is_new) {
      names[found->second].label.text += ", " + spot->name;
      continue;
    }
    Label label{at, spot->name, Anchor::kStart, spot->name_paint};
    label.is_bold = spot->is_bold;
    label.has_halo = true;
    names.push_back({label, at});
  }
  return names;
}

}  // namespace

Picture draw(const Plane& chart) {
  Picture picture{chart.title, kWidth};
  picture.legend = chart.legend;
  picture.growth = kGrowth;
  const Range peaks = peaks_of(chart);
  Range room = peaks;
  if (chart.limit && far_side(*chart.limit, peaks).empty()) {
    room.include(static_cast<double>(chart.limit->bytes.count));
  }
  const Plot plot = draw_frame(picture, room, steps_of(chart));
  if (chart.limit) draw_limit(picture, *chart.limit, peaks, plot);
  for (const auto& [from, turn, to] : steps_through(chart.front, plot)) {
    draw_steps(picture, {from, turn});
    draw_steps(picture, {turn, to});
  }
  std::vector<const Spot*> spots;
  for (const Spot& spot : chart.spots) spots.push_back(&spot);
  std::stable_sort(spots.begin(), spots.end(),
                   [](const Spot* a, const Spot* b) { return a->rank < b->rank; });
  const std::vector<Name> names = names_of(spots, plot);
  std::reverse(spots.begin(), spots.end());
  draw_spots(picture, spots, plot);
  add_names(picture, names, {plot.area, kClearance, kLongestName * plot.area.width()});
  return picture;
}

namespace {

constexpr double kSmallSpotRadius = 4;

Axis ratio_axis_of(Range range) {
  range.include(1);
  const double margin = std::pow(range.high / range.low, 0.05) * 1.01;
  return make_axis(Quantity::kRatio, range.low / margin, range.high * margin, 4);
}

// Draws spots and their names. Spots on the front are named first.
void draw_small_spots(Picture& picture, const FrontPanel& panel, const Plot& plot) {
  constexpr double kLongestSpotName = 120;
  std::vector<const FrontSpot*> spots;
  for (const FrontSpot& spot : panel.spots) spots.push_back(&spot);
  std::stable_partition(spots.begin(), spots.end(),
                        [](const FrontSpot* spot) { return spot->is_on_front; });
  for (auto spot = spots.rbegin(); spot != spots.rend(); ++spot) {
    const Paint paint = (*spot)->is_on_front ? Paint::kBlue : Paint::kGrey;
    picture.add(Marker{MarkerKind::kCircle, plot((*spot)->at), kSmallSpotRadius, paint,
                       Paint::kSurface, (*spot)->hint});
  }
  std::vector<Name> names;
  for (const FrontSpot* spot : spots) {
    Label label{{}, spot->name, Anchor::kStart, spot->is_on_front ? Paint::kInk : Paint::kMuted};
    label.has_halo = true;
    names.push_back({label, plot(spot->at)});
  }
  add_names(picture, names, {plot.area, kSmallSpotRadius + 3, kLongestSpotName});
}

Picture draw_front_panel(const FrontPanels& chart, const FrontPanel& panel) {
  constexpr double kAxisTitle = 22;  // height of the y axis' title
  constexpr double kPlotHeight = 150;
  constexpr double kMarginRight = 12;
  constexpr double kMarginBottom = 40;
  Picture picture{chart.title + ": " + panel.name, kColumnWidth};
  draw_head(picture, Panel{panel.name, "", panel.words}, {0, 0, kColumnWidth, kHead});
  Plot plot{{}, ratio_axis_of(chart.peaks), ratio_axis_of(chart.steps)};
  const double top = kHead + kAxisTitle;
  plot.area = {y_labels_width(plot.y), top, kColumnWidth - kMarginRight, top + kPlotHeight};
  draw_axes(picture, plot, 0, "Step time relative to reference", "Peak relative to reference",
            GridLines::kDrawn);
  picture.height = plot.area.bottom + kMarginBottom;
  std::vector<Position> front;
  for (const FrontSpot& spot : panel.spots) {
    if (spot.is_on_front) front.push_back(spot.at);
  }
  for (const auto& [from, turn, to] : steps_through(front, plot)) {
    draw_steps(picture, {from, turn, to});
  }
  draw_small_spots(picture, panel, plot);
  return picture;
}

}  // namespace

std::vector<Picture> draw(const FrontPanels& chart) {
  std::vector<Picture> pictures;
  for (const FrontPanel& panel : chart.panels) pictures.push_back(draw_front_panel(chart, panel));
  return pictures;
}

}  // namespace rematch::chart
