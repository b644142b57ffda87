#include "reports/render/charts/front_chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "reports/render/charts/legend.h"
#include "reports/render/charts/plane.h"

namespace rematch {
namespace {

constexpr double kRadius = 5;
// Closer than this, a predicted marker would lie on the measured one.
constexpr double kVisible = 1.0;

struct Dot {
  const ChartPoint* charted = nullptr;
  Position at;
  std::optional<Position> predicted;
};

StepInterval step_interval(const PointRecord& point) {
  const double step = *measured_step(point);
  if (!point.time->step_interval) return {step, step, step};
  return {static_cast<double>((*point.time->step_interval)[0].count()), step,
          static_cast<double>((*point.time->step_interval)[1].count())};
}

std::optional<double> predicted_peak(const PointRecord& point) {
  if (!point.memory->predicted_peak_allocated) return std::nullopt;
  return static_cast<double>(point.memory->predicted_peak_allocated->count);
}

Plane plane_of(const std::vector<const ChartPoint*>& measured, std::optional<Bytes> limit,
               double width) {
  PlaneRange peaks;
  PlaneRange steps;
  std::vector<StepInterval> intervals;
  for (const ChartPoint* charted : measured) {
    peaks.include(*measured_peak(charted->point()));
    if (const auto predicted = predicted_peak(charted->point())) peaks.include(*predicted);
    steps.include(*measured_step(charted->point()));
    intervals.push_back(step_interval(charted->point()));
  }
  include_intervals(steps, intervals);
  return make_plane(peaks, steps, limit, width);
}

std::vector<Dot> make_dots(const std::vector<const ChartPoint*>& measured, const Plane& plane) {
  std::vector<Dot> dots;
  for (const ChartPoint* charted : measured) {
    const PointRecord& point = charted->point();
    const double x = plane.x(*measured_peak(point));
    Dot dot{charted, {x, plane.y(*measured_step(point))}, {}};
    if (const auto predicted = predicted_peak(point)) {
      const double there = plane.x(*predicted);
      if (std::abs(there - x) > kVisible) dot.predicted = Position{there, dot.at.y};
    }
    dots.push_back(dot);
  }
  return dots;
}

MarkerKind marker_of(const ChartPoint& charted) {
  return charted.point().identity.schedule == Schedule::kOnDemand ? MarkerKind::kCircle
                                                                  : MarkerKind::kSquare;
}

double radius_of(const ChartPoint& charted) {
  return marker_of(charted) == MarkerKind::kCircle ? kRadius : kRadius - 0.6;
}

void draw_dots(Picture& picture, const std::vector<Dot>& dots, const Plane& plane,
               std::vector<Box>& lines) {
  for (const Dot& dot : dots) {
    const Paint paint = dot.charted->on_front ? Paint::kBlue : Paint::kGrey;
    const StepInterval interval = step_interval(dot.charted->point());
    draw_step_interval(picture, interval, dot.at.x, paint, plane, lines);
    if (!dot.predicted) continue;
    draw_line(picture, {dot.at, *dot.predicted, paint, 1, Dash::kDashed}, lines);
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
void draw_names_of(const std::vector<Dot>& dots, Picture& picture, const Plane& plane,
                   std::vector<Box> obstacles) {
  std::vector<const Dot*> order;
  for (const Dot& dot : dots) order.push_back(&dot);
  std::stable_sort(order.begin(), order.end(), [](const Dot* a, const Dot* b) {
    const auto rank = [](const ChartPoint& charted) {
      return charted.baseline ? 0 : charted.on_front ? 1 : 2;
    };
    return rank(*a->charted) < rank(*b->charted);
  });
  std::vector<PlaneName> names;
  for (const Dot* dot : order) {
    const ChartPoint& charted = *dot->charted;
    names.push_back({dot->at, charted.policy,
                     charted.on_front || charted.baseline ? Paint::kInk : Paint::kMuted,
                     charted.baseline ? Weight::kBold : Weight::kNormal});
    obstacles.push_back(around_marker(dot->at, kRadius));
    if (dot->predicted) obstacles.push_back(around_marker(*dot->predicted, kRadius));
  }
  draw_names(picture, std::move(names), kRadius, std::move(obstacles), plane);
}

std::vector<LegendEntry> legend_of(const std::vector<Dot>& dots) {
  const auto any = [&dots](auto&& holds) { return std::any_of(dots.begin(), dots.end(), holds); };
  std::vector<LegendEntry> entries = {
      {MarkerKind::kCircle, Paint::kBlue, Paint::kClear, "on the front"}};
  if (any([](const Dot& dot) { return !dot.charted->on_front; })) {
    entries.push_back({MarkerKind::kCircle, Paint::kGrey, Paint::kClear, "dominated"});
  }
  const auto has = [&any](MarkerKind kind) {
    return any([kind](const Dot& dot) { return marker_of(*dot.charted) == kind; });
  };
  if (has(MarkerKind::kCircle) && has(MarkerKind::kSquare)) {
    entries.push_back({MarkerKind::kCircle, Paint::kClear, Paint::kMuted, "on_demand"});
    entries.push_back({MarkerKind::kSquare, Paint::kClear, Paint::kMuted, "whole_region"});
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
  PlaneRange peaks;
  for (const ChartPoint* charted : measured) peaks.include(*measured_peak(charted->point()));
  const Plane plane = plane_of(measured, device_limit, width);
  const std::vector<Dot> dots = make_dots(measured, plane);
  draw_plane(picture, plane);
  std::optional<MemoryLimit> limit;
  if (device_limit) limit = {"device limit", *device_limit};
  std::vector<Box> lines = draw_limit(picture, limit, peaks, plane);
  std::vector<Position> corners;
  for (const Dot& dot : dots) {
    if (dot.charted->on_front) corners.push_back(dot.at);
  }
  draw_steps(picture, std::move(corners), lines);
  draw_dots(picture, dots, plane, lines);
  draw_names_of(dots, picture, plane, std::move(lines));
  end_with_legend(picture, plane, legend_of(dots));
  return picture;
}

}  // namespace rematch
