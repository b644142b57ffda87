#include "reports/render/charts/plane.h"

#include <algorithm>
#include <utility>

#include "reports/render/charts/axes.h"
#include "reports/render/charts/interval.h"
#include "reports/render/charts/placement.h"
#include "reports/render/format.h"
#include "reports/render/text_width.h"

namespace rematch {
namespace {

constexpr double kNarrow = 600;  // below this width the plot is taller than wide
constexpr double kRightMargin = 14;
constexpr double kTopMargin = 24;
constexpr double kBottomMargin = 46;  // what the legend goes below
constexpr double kTextSize = 12;
constexpr double kBoldWidth = 1.13;  // of bold text over normal text
// A limit further out than this many times the points' peaks would squeeze them together.
constexpr double kNearLimit = 1.6;

// "far to the right"; empty: near enough for a line.
std::string far_side(Bytes limit, const PlaneRange& peaks) {
  const auto bytes = static_cast<double>(limit.count);
  if (bytes > kNearLimit * peaks.high) return "far to the right";
  return bytes * kNearLimit < peaks.low ? "far to the left" : "";
}

}  // namespace

void PlaneRange::include(double value) {
  low = std::min(low, value);
  high = std::max(high, value);
}

void PlaneRange::widen(double part) {
  const double margin = (high - low) * part;
  low = std::max(0.0, low - margin);
  high += margin;
}

void include_intervals(PlaneRange& steps, const std::vector<StepInterval>& intervals) {
  // Of the largest step time: an interval that is longer says little about the front.
  constexpr double kWidest = 0.25;
  std::vector<double> reaches;
  for (const StepInterval& interval : intervals) {
    reaches.push_back(std::max(interval.step - interval.low, interval.high - interval.step));
  }
  const double room =
      room_for_intervals(steps.high - steps.low, std::move(reaches), kWidest * steps.high);
  const double least = steps.low - room;
  const double most = steps.high + room;
  for (const StepInterval& interval : intervals) {
    steps.include(std::max(least, interval.low));
    steps.include(std::min(most, interval.high));
  }
}

Plane make_plane(PlaneRange peaks, PlaneRange steps, std::optional<Bytes> limit, double width) {
  if (limit && far_side(*limit, peaks).empty()) peaks.include(static_cast<double>(limit->count));
  peaks.widen(0.04);
  steps.widen(0.04);
  Plane plane;
  plane.x_axis = make_axis(Quantity::kBytes, peaks.low, peaks.high, width < kNarrow ? 5 : 9);
  plane.y_axis = make_axis(Quantity::kDuration, steps.low, steps.high, 6);
  const double height = width * (width < kNarrow ? 0.85 : 0.36);
  plane.area = {y_labels_width(plane.y_axis), kTopMargin, width - kRightMargin,
                kTopMargin + height};
  plane.x = x_scale(plane.x_axis, plane.area);
  plane.y = y_scale(plane.y_axis, plane.area);
  return plane;
}

void draw_plane(Picture& picture, const Plane& plane) {
  const Box& area = plane.area;
  draw_y_axis(picture, plane.y_axis, area);
  draw_x_axis(picture, plane.x_axis, area, GridLines::kVertical);
  picture.add(Line{{area.left, area.bottom}, {area.right, area.bottom}, Paint::kAxis});
  picture.add(Label{{0, area.top - 12},
                    "step time, " + plane.y_axis.unit,
                    Anchor::kStart,
                    Paint::kInk,
                    kTextSize});
  picture.add(Label{{area.right, area.bottom + 35},
                    "peak allocated, " + plane.x_axis.unit,
                    Anchor::kEnd,
                    Paint::kInk,
                    kTextSize});
}

std::vector<Box> draw_limit(Picture& picture, const std::optional<MemoryLimit>& limit,
                            const PlaneRange& peaks, const Plane& plane) {
  if (!limit) return {};
  const std::string text = limit->name + " " + format_bytes(limit->bytes);
  Label label{
      {plane.area.right, plane.area.top - 12}, text, Anchor::kEnd, Paint::kMuted, kTextSize};
  if (const std::string side = far_side(limit->bytes, peaks); !side.empty()) {
    label.text += ", " + side;
    picture.add(label);
    return {};
  }
  const double x = plane.x(static_cast<double>(limit->bytes.count));
  const Line line{
      {x, plane.area.top}, {x, plane.area.bottom}, Paint::kOrange, 1.5, Dash::kDashed, text};
  picture.add(line);
  picture.add(label);
  return {{x - 2, plane.area.top, x + 2, plane.area.bottom}};
}

void draw_line(Picture& picture, const Line& line, std::vector<Box>& lines) {
  // In pieces: the box around the whole of a slanting line holds much that it does not cover.
  constexpr double kPiece = 8;
  const double across = line.to.x - line.from.x;
  const double down = line.to.y - line.from.y;
  const int pieces =
      std::max(1, static_cast<int>(std::ceil(std::min(std::abs(across), std::abs(down)) / kPiece)));
  const auto at = [&](int piece) {
    return Position{line.from.x + across * piece / pieces, line.from.y + down * piece / pieces};
  };
  for (int piece = 0; piece < pieces; ++piece) {
    const Box covered = extent(Line{at(piece), at(piece + 1)});
    lines.push_back({covered.left - 1, covered.top - 1, covered.right + 1, covered.bottom + 1});
  }
  picture.add(line);
}

void draw_step_interval(Picture& picture, const StepInterval& interval, double x, Paint paint,
                        const Plane& plane, std::vector<Box>& lines) {
  if (interval.low == interval.high) return;
  const auto end_at = [&](double step) {
    return IntervalEnd{{x, plane.y(step)}, plane.y.holds(step)};
  };
  lines.push_back(draw_interval(picture, {end_at(interval.low), end_at(interval.high), paint}));
}

void draw_steps(Picture& picture, std::vector<Position> corners, std::vector<Box>& lines) {
  std::sort(corners.begin(), corners.end(),
            [](const Position& a, const Position& b) { return a.x < b.x; });
  for (std::size_t next = 1; next < corners.size(); ++next) {
    const Position& from = corners[next - 1];
    const Position turn{corners[next].x, from.y};
    draw_line(picture, {from, turn, Paint::kBlue, 1, Dash::kDashed, ""}, lines);
    draw_line(picture, {turn, corners[next], Paint::kBlue, 1, Dash::kDashed, ""}, lines);
  }
}

void draw_names(Picture& picture, std::vector<PlaneName> names, double radius,
                std::vector<Box> obstacles, const Plane& plane) {
  std::vector<LabelRequest> requests;
  for (PlaneName& name : names) {
    name.text = fit_text(name.text, kTextSize, plane.area.width() / 3);
    const double stretch = name.weight == Weight::kBold ? kBoldWidth : 1;
    requests.push_back(
        {name.at, radius + 4, stretch * text_width(name.text, kTextSize), kTextSize * 1.1});
  }
  const std::vector<std::optional<Box>> boxes =
      place_labels(requests, std::move(obstacles), plane.area);
  for (std::size_t index = 0; index < boxes.size(); ++index) {
    if (!boxes[index]) continue;
    const PlaneName& name = names[index];
    const Position start{boxes[index]->left, boxes[index]->bottom - kTextSize * 0.28};
    picture.add(Label{start, name.text, Anchor::kStart, name.paint, kTextSize, name.weight, "",
                      Backing::kHalo});
  }
}

Box around_marker(Position at, double radius) {
  return extent(Marker{MarkerKind::kCircle, at, radius + 1});
}

void end_with_legend(Picture& picture, const Plane& plane,
                     const std::vector<LegendEntry>& entries) {
  const double left = plane.area.left;
  const Picture legend = draw_legend(entries, picture.width - left);
  insert(picture, legend, {left, plane.area.bottom + kBottomMargin});
  picture.height = plane.area.bottom + kBottomMargin + legend.height;
}

}  // namespace rematch
