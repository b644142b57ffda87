#include "reports/render/charts/front_chart.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "reports/render/charts/axes.h"
#include "reports/render/charts/legend.h"
#include "reports/render/charts/placement.h"
#include "reports/render/format.h"
#include "reports/render/scale.h"
#include "reports/render/text_width.h"

namespace rematch {
namespace {

constexpr double kNarrow = 600;  // below this width the plot is taller than wide
constexpr double kTextSize = 12;
constexpr double kRadius = 5;
constexpr double kRightMargin = 14;
constexpr double kBottomMargin = 46;
constexpr double kTopMargin = 24;
// A limit further out than this many times the largest peak would squeeze the points together.
constexpr double kNearLimit = 1.6;
// Closer than this, a predicted marker would lie on the measured one.
constexpr double kVisible = 1.0;

struct Dot {
  const ChartPoint* charted = nullptr;
  Position at;
  Position low;  // ends of the interval
  Position high;
  std::optional<Position> predicted;
};

struct Plot {
  Box area;
  Axis x_axis;
  Axis y_axis;
  Scale x;
  Scale y;
};

struct Range {
  double low = INFINITY;
  double high = -INFINITY;
  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  // A margin of empty space, so that markers do not sit on the frame.
  void widen(double part) {
    const double margin = (high - low) * part;
    low = std::max(0.0, low - margin);
    high += margin;
  }
};

std::array<double, 2> step_interval(const PointRecord& point) {
  const double step = *measured_step(point);
  if (!point.time->step_interval) return {step, step};
  return {static_cast<double>((*point.time->step_interval)[0].count()),
          static_cast<double>((*point.time->step_interval)[1].count())};
}

std::optional<double> predicted_peak(const PointRecord& point) {
  if (!point.memory->predicted_peak_allocated) return std::nullopt;
  return static_cast<double>(point.memory->predicted_peak_allocated->count);
}

bool is_near(std::optional<Bytes> limit, double largest) {
  return limit && static_cast<double>(limit->count) <= kNearLimit * largest;
}

Plot make_plot(const std::vector<const ChartPoint*>& measured, std::optional<Bytes> limit,
               double width) {
  Range peaks;
  Range steps;
  for (const ChartPoint* charted : measured) {
    peaks.include(*measured_peak(charted->point()));
    if (const auto predicted = predicted_peak(charted->point())) peaks.include(*predicted);
    for (const double end : step_interval(charted->point())) steps.include(end);
  }
  if (is_near(limit, peaks.high)) peaks.include(static_cast<double>(limit->count));
  peaks.widen(0.04);
  steps.widen(0.04);
  Plot plot;
  plot.x_axis = make_axis(Quantity::kBytes, peaks.low, peaks.high, width < kNarrow ? 5 : 9);
  plot.y_axis = make_axis(Quantity::kDuration, steps.low, steps.high, 6);
  const double height = width * (width < kNarrow ? 0.85 : 0.36);
  plot.area = {y_labels_width(plot.y_axis), kTopMargin, width - kRightMargin, kTopMargin + height};
  plot.x = x_scale(plot.x_axis, plot.area);
  plot.y = y_scale(plot.y_axis, plot.area);
  return plot;
}

void draw_axes(Picture& picture, const Plot& plot) {
  const Box& area = plot.area;
  draw_y_axis(picture, plot.y_axis, area);
  draw_x_axis(picture, plot.x_axis, area, GridLines::kVertical);
  picture.add(Line{{area.left, area.bottom}, {area.right, area.bottom}, Paint::kAxis});
  picture.add(Label{{0, area.top - 12},
                    "step time, " + plot.y_axis.unit,
                    Anchor::kStart,
                    Paint::kInk,
                    kTextSize});
  picture.add(Label{{area.right, area.bottom + 35},
                    "peak allocated, " + plot.x_axis.unit,
                    Anchor::kEnd,
                    Paint::kInk,
                    kTextSize});
}

std::vector<Dot> make_dots(const std::vector<const ChartPoint*>& measured, const Plot& plot) {
  std::vector<Dot> dots;
  for (const ChartPoint* charted : measured) {
    const PointRecord& point = charted->point();
    const auto [low, high] = step_interval(point);
    const double x = plot.x(*measured_peak(point));
    Dot dot{charted, {x, plot.y(*measured_step(point))}, {x, plot.y(low)}, {x, plot.y(high)}, {}};
    if (const auto predicted = predicted_peak(point)) {
      const double there = plot.x(*predicted);
      if (std::abs(there - x) > kVisible) dot.predicted = Position{there, dot.at.y};
    }
    dots.push_back(dot);
  }
  return dots;
}

// Steps from one point of the front to the next: along a step time, then down at a peak. What they
// cover goes to `lines`.
void draw_front_line(Picture& picture, const std::vector<Dot>& dots, std::vector<Box>& lines) {
  std::vector<Position> corners;
  for (const Dot& dot : dots) {
    if (dot.charted->on_front) corners.push_back(dot.at);
  }
  std::sort(corners.begin(), corners.end(),
            [](const Position& a, const Position& b) { return a.x < b.x; });
  for (std::size_t next = 1; next < corners.size(); ++next) {
    const Position& from = corners[next - 1];
    const Position turn{corners[next].x, from.y};
    for (const Line& line : {Line{from, turn, Paint::kBlue, 1, Dash::kDashed, ""},
                             Line{turn, corners[next], Paint::kBlue, 1, Dash::kDashed, ""}}) {
      const Box covered = extent(line);
      lines.push_back({covered.left - 1, covered.top - 1, covered.right + 1, covered.bottom + 1});
      picture.add(line);
    }
  }
}

MarkerKind marker_of(const ChartPoint& charted) {
  return charted.point().identity.schedule == Schedule::kOnDemand ? MarkerKind::kCircle
                                                                  : MarkerKind::kSquare;
}

double radius_of(const ChartPoint& charted) {
  return marker_of(charted) == MarkerKind::kCircle ? kRadius : kRadius - 0.6;
}

void draw_dots(Picture& picture, const std::vector<Dot>& dots, std::vector<Box>& lines) {
  for (const Dot& dot : dots) {
    const Paint paint = dot.charted->on_front ? Paint::kBlue : Paint::kGrey;
    if (dot.low.y != dot.high.y) {
      picture.add(Line{dot.low, dot.high, paint, 1.5});
      lines.push_back({dot.at.x - 1, dot.high.y, dot.at.x + 1, dot.low.y});
    }
    if (!dot.predicted) continue;
    picture.add(Line{dot.at, *dot.predicted, paint, 1, Dash::kDashed});
    picture.add(Marker{marker_of(*dot.charted), *dot.predicted, radius_of(*dot.charted),
                       Paint::kSurface, paint, "predicted peak of " + name_of(*dot.charted)});
  }
  // The front lies above what it dominates.
  for (const bool on_front : {false, true}) {
    for (const Dot& dot : dots) {
      if (dot.charted->on_front != on_front) continue;
      picture.add(Marker{marker_of(*dot.charted), dot.at, radius_of(*dot.charted),
                         on_front ? Paint::kBlue : Paint::kGrey, Paint::kSurface,
                         describe_chart_point(*dot.charted)});
    }
  }
}

// Baselines are named first, then the front, then the rest as long as there is room.
void draw_names(Picture& picture, const std::vector<Dot>& dots, const Plot& plot,
                const std::vector<Box>& lines) {
  std::vector<const Dot*> order;
  for (const Dot& dot : dots) order.push_back(&dot);
  std::stable_sort(order.begin(), order.end(), [](const Dot* a, const Dot* b) {
    const auto rank = [](const ChartPoint& charted) {
      return charted.baseline ? 0 : charted.on_front ? 1 : 2;
    };
    return rank(*a->charted) < rank(*b->charted);
  });
  std::vector<LabelRequest> requests;
  std::vector<Box> obstacles;
  std::vector<std::string> texts;
  for (const Dot* dot : order) {
    texts.push_back(fit_text(dot->charted->policy, kTextSize, plot.area.width() / 3));
    const double bold = dot->charted->baseline ? 1.13 : 1;
    requests.push_back(
        {dot->at, kRadius + 4, bold * text_width(texts.back(), kTextSize), kTextSize * 1.1});
    obstacles.push_back(extent(Marker{MarkerKind::kCircle, dot->at, kRadius + 1}));
    if (dot->predicted) {
      obstacles.push_back(extent(Marker{MarkerKind::kCircle, *dot->predicted, kRadius + 1}));
    }
  }
  const std::vector<std::optional<Box>> boxes = place_labels(requests, obstacles, lines, plot.area);
  for (std::size_t index = 0; index < boxes.size(); ++index) {
    if (!boxes[index]) continue;
    const ChartPoint& charted = *order[index]->charted;
    picture.add(Label{{boxes[index]->left, boxes[index]->bottom - kTextSize * 0.28},
                      texts[index],
                      Anchor::kStart,
                      charted.on_front || charted.baseline ? Paint::kInk : Paint::kMuted,
                      kTextSize,
                      charted.baseline ? Weight::kBold : Weight::kNormal,
                      "",
                      Backing::kHalo});
  }
}

// The boxes that names must not cover.
std::vector<Box> draw_limit(Picture& picture, std::optional<Bytes> limit, double largest,
                            const Plot& plot) {
  if (!limit) return {};
  const std::string text = "device limit " + format_bytes(*limit);
  Label label{{plot.area.right, plot.area.top - 12}, text, Anchor::kEnd, Paint::kMuted, kTextSize};
  if (!is_near(limit, largest)) {
    label.text += ", far to the right";
    picture.add(label);
    return {};
  }
  const double x = plot.x(static_cast<double>(limit->count));
  const Line line{
      {x, plot.area.top}, {x, plot.area.bottom}, Paint::kOrange, 1.5, Dash::kDashed, text};
  picture.add(line);
  picture.add(label);
  return {{x - 2, plot.area.top, x + 2, plot.area.bottom}};
}

std::vector<LegendEntry> legend_of(const std::vector<Dot>& dots) {
  const auto any = [&dots](auto&& holds) { return std::any_of(dots.begin(), dots.end(), holds); };
  std::vector<LegendEntry> entries = {
      {MarkerKind::kCircle, Paint::kBlue, Paint::kNone, "on the front"}};
  if (any([](const Dot& dot) { return !dot.charted->on_front; })) {
    entries.push_back({MarkerKind::kCircle, Paint::kGrey, Paint::kNone, "dominated"});
  }
  const auto has = [&any](MarkerKind kind) {
    return any([kind](const Dot& dot) { return marker_of(*dot.charted) == kind; });
  };
  if (has(MarkerKind::kCircle) && has(MarkerKind::kSquare)) {
    entries.push_back({MarkerKind::kCircle, Paint::kNone, Paint::kMuted, "on_demand"});
    entries.push_back({MarkerKind::kSquare, Paint::kNone, Paint::kMuted, "whole_region"});
  }
  if (any([](const Dot& dot) { return dot.predicted.has_value(); })) {
    entries.push_back({MarkerKind::kCircle, Paint::kSurface, Paint::kGrey,
                       "predicted, joined to the measured peak"});
  }
  return entries;
}

std::vector<const ChartPoint*> with_front_figures(const std::vector<ChartPoint>& points) {
  std::vector<const ChartPoint*> measured;
  for (const ChartPoint& charted : points) {
    if (measured_peak(charted.point()) && measured_step(charted.point())) {
      measured.push_back(&charted);
    }
  }
  return measured;
}

}  // namespace

bool has_front(const std::vector<ChartPoint>& points) {
  return !with_front_figures(points).empty();
}

Picture draw_front(const std::vector<ChartPoint>& points, std::optional<Bytes> device_limit,
                   double width) {
  const std::vector<const ChartPoint*> measured = with_front_figures(points);
  Picture picture{"Step time against peak memory", width, 0, {}};
  double largest = 0;
  for (const ChartPoint* charted : measured) {
    largest = std::max(largest, *measured_peak(charted->point()));
  }
  const Plot plot = make_plot(measured, device_limit, width);
  const std::vector<Dot> dots = make_dots(measured, plot);
  draw_axes(picture, plot);
  std::vector<Box> lines = draw_limit(picture, device_limit, largest, plot);
  draw_front_line(picture, dots, lines);
  draw_dots(picture, dots, lines);
  draw_names(picture, dots, plot, lines);
  const double left = plot.area.left;
  const Picture legend = draw_legend(legend_of(dots), width - left);
  insert(picture, legend, {left, plot.area.bottom + kBottomMargin});
  picture.height = plot.area.bottom + kBottomMargin + legend.height;
  return picture;
}

}  // namespace rematch
