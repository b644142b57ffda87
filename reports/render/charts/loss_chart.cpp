#include "reports/render/charts/loss_chart.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "reports/render/charts/axes.h"
#include "reports/render/charts/legend.h"
#include "reports/render/format.h"

namespace rematch {
namespace {

constexpr double kTop = 24;
constexpr double kMarkerRadius = 3.5;
// More curves than hues: the last hue stands for the rest.
constexpr std::array kHues = {Paint::kBlue,   Paint::kOrange, Paint::kTeal,
                              Paint::kPurple, Paint::kPink,   Paint::kGrey};

Paint hue_of(std::size_t curve) { return kHues.at(std::min(curve, kHues.size() - 1)); }

std::string describe(const LossCurve& curve) {
  const std::size_t others = curve.names.size() - 1;
  if (others == 0) return curve.names.front();
  return curve.names.front() + " and " + std::to_string(others) +
         (others == 1 ? " other with the same bits" : " others with the same bits");
}

std::string describe_step(const LossCurve& curve, std::size_t step) {
  return describe(curve) + "\nstep " + std::to_string(step) + ": " +
         (curve.loss[step] ? format_fixed(*curve.loss[step], 6) : "not finite") + " (" +
         curve.bits[step] + ")";
}

void draw_curve(Picture& picture, const LossCurve& curve, Paint hue, const Scale& x, const Scale& y,
                double bottom) {
  Path path{{}, Paint::kNone, hue, 2, describe(curve)};
  const auto flush = [&] {
    if (path.corners.size() > 1) picture.add(path);
    path.corners.clear();
  };
  for (std::size_t step = 0; step < curve.loss.size(); ++step) {
    if (curve.loss[step]) {
      path.corners.push_back({x(static_cast<double>(step)), y(*curve.loss[step])});
    } else {
      flush();
      picture.add(Marker{MarkerKind::kCross,
                         {x(static_cast<double>(step)), bottom - 6},
                         4,
                         Paint::kNone,
                         hue,
                         describe_step(curve, step)});
    }
  }
  flush();
  if (curve.loss.size() > 60) return;  // markers would touch
  for (std::size_t step = 0; step < curve.loss.size(); ++step) {
    if (!curve.loss[step]) continue;
    picture.add(Marker{MarkerKind::kCircle,
                       {x(static_cast<double>(step)), y(*curve.loss[step])},
                       kMarkerRadius,
                       hue,
                       Paint::kSurface,
                       describe_step(curve, step)});
  }
}

}  // namespace

std::vector<LossCurve> loss_curves(const std::vector<ChartPoint>& points) {
  std::vector<LossCurve> curves;
  for (const ChartPoint& charted : points) {
    if (charted.point().steps.empty()) continue;
    LossCurve curve{{name_of(charted)}, {}, {}};
    for (const StepRecord& step : charted.point().steps) {
      curve.loss.push_back(step.loss);
      curve.bits.push_back(step.loss_bits);
    }
    const auto same = std::find_if(curves.begin(), curves.end(), [&curve](const LossCurve& other) {
      return other.bits == curve.bits;
    });
    if (same == curves.end()) {
      curves.push_back(std::move(curve));
    } else {
      same->names.push_back(curve.names.front());
    }
  }
  return curves;
}

Picture draw_losses(const std::vector<LossCurve>& curves, double width) {
  double low = INFINITY;
  double high = -INFINITY;
  std::size_t steps = 1;
  for (const LossCurve& curve : curves) {
    steps = std::max(steps, curve.loss.size());
    for (const std::optional<double>& loss : curve.loss) {
      if (!loss) continue;
      low = std::min(low, *loss);
      high = std::max(high, *loss);
    }
  }
  std::vector<LegendEntry> entries;
  for (std::size_t curve = 0; curve < std::min(curves.size(), kHues.size() - 1); ++curve) {
    entries.push_back({MarkerKind::kCircle, hue_of(curve), Paint::kNone, describe(curves[curve])});
  }
  if (curves.size() >= kHues.size()) {
    entries.push_back({MarkerKind::kCircle, hue_of(curves.size()), Paint::kNone,
                       std::to_string(curves.size() - entries.size()) + " other curves"});
  }
  const Picture legend = draw_legend(entries, width);
  const double top = legend.height + 8 + kTop;
  const Axis y_axis = make_axis(Quantity::kNumber, low, high, 5);
  Axis x_axis = make_axis(Quantity::kCount, 0, static_cast<double>(steps - 1), 8);
  const Box area{y_labels_width(y_axis), top, width - 10, top + (width < 450 ? 190 : 230)};
  Picture picture{"Loss by step", width, area.bottom + 42, {}};
  insert(picture, legend, {0, 0});
  draw_y_axis(picture, y_axis, area);
  draw_x_axis(picture, x_axis, area, GridLines::kNone);
  picture.add(Label{{0, top - 12}, "loss", Anchor::kStart, Paint::kMuted, kTickSize});
  picture.add(
      Label{{area.right, area.bottom + 35}, "step", Anchor::kEnd, Paint::kMuted, kTickSize});
  for (std::size_t curve = curves.size(); curve-- > 0;) {
    draw_curve(picture, curves[curve], hue_of(curve), x_scale(x_axis, area), y_scale(y_axis, area),
               area.bottom);
  }
  return picture;
}

}  // namespace rematch
