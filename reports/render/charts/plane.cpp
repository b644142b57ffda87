#include "reports/render/charts/plane.h"

#include <algorithm>

#include "reports/render/charts/axes.h"
#include "reports/render/format.h"

namespace rematch {
namespace {

constexpr double kNarrow = 600;  // below this width the plot is taller than wide
constexpr double kRightMargin = 14;
constexpr double kTopMargin = 24;
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
                    kPlaneTextSize});
  picture.add(Label{{area.right, area.bottom + 35},
                    "peak allocated, " + plane.x_axis.unit,
                    Anchor::kEnd,
                    Paint::kInk,
                    kPlaneTextSize});
}

std::vector<Box> draw_limit(Picture& picture, const std::optional<MemoryLimit>& limit,
                            const PlaneRange& peaks, const Plane& plane) {
  if (!limit) return {};
  const std::string text = limit->name + " " + format_bytes(limit->bytes);
  Label label{
      {plane.area.right, plane.area.top - 12}, text, Anchor::kEnd, Paint::kMuted, kPlaneTextSize};
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

void draw_steps(Picture& picture, std::vector<Position> corners, std::vector<Box>& lines) {
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

}  // namespace rematch
