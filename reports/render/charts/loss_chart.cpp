#include "reports/render/charts/loss_chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

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

std::string two_digits(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2g", value);
  return text.data();
}

std::string describe(const LossBand& band) {
  const std::string runs = std::to_string(band.num_runs) + " runs of " + band.name;
  if (band.widest() == 0) return runs + ", which do not differ";
  return runs + ", which differ by " + two_digits(band.widest()) + " at most";
}

std::string describe_step(const LossCurve& curve, std::size_t step) {
  return describe(curve) + "\nstep " + std::to_string(step) + ": " +
         (curve.loss[step] ? format_fixed(*curve.loss[step], 6) : "not finite") + " (" +
         curve.bits[step] + ")";
}

void draw_curve(Picture& picture, const LossCurve& curve, Paint hue, const Scale& x, const Scale& y,
                double bottom) {
  Path path{{}, Paint::kClear, hue, 2, describe(curve)};
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
                         Paint::kClear,
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

// The band's stretches without a gap, each closed along its lower edge.
void draw_band(Picture& picture, const LossBand& band, const Scale& x, const Scale& y) {
  Path path{{}, Paint::kGrid, Paint::kAxis, 1, describe(band)};
  std::vector<Position> lower;
  const auto flush = [&] {
    path.corners.insert(path.corners.end(), lower.rbegin(), lower.rend());
    if (lower.size() > 1) picture.add(path);
    path.corners.clear();
    lower.clear();
  };
  for (std::size_t step = 0; step < band.range.size(); ++step) {
    if (!band.range[step]) {
      flush();
      continue;
    }
    const double across = x(static_cast<double>(step));
    path.corners.push_back({across, y((*band.range[step])[1])});
    lower.push_back({across, y((*band.range[step])[0])});
  }
  flush();
}

std::optional<std::array<double, 2>> range_at(const ComparedPoint& compared, std::size_t step) {
  std::array<double, 2> range = {INFINITY, -INFINITY};
  const auto widen = [&](const std::vector<StepRecord>& steps) {
    if (step >= steps.size() || !steps[step].loss) return false;
    range = {std::min(range[0], *steps[step].loss), std::max(range[1], *steps[step].loss)};
    return true;
  };
  if (!widen(compared.point->steps)) return std::nullopt;
  for (const RepeatRecord* repeat : compared.repeats) {
    if (!widen(repeat->steps)) return std::nullopt;
  }
  return range;
}

}  // namespace

double LossBand::widest() const {
  double widest = 0;
  for (const auto& step : range) {
    if (step) widest = std::max(widest, (*step)[1] - (*step)[0]);
  }
  return widest;
}

std::optional<LossBand> loss_band(const std::vector<ChartPoint>& points) {
  for (const ChartPoint& charted : points) {
    if (charted.compared->repeats.empty()) continue;
    LossBand band{name_of(charted), charted.compared->repeats.size() + 1, {}};
    for (std::size_t step = 0; step < charted.point().steps.size(); ++step) {
      band.range.push_back(range_at(*charted.compared, step));
    }
    return band;
  }
  return std::nullopt;
}

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

Picture draw_losses(const std::vector<LossCurve>& curves, const std::optional<LossBand>& band,
                    double width) {
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
    entries.push_back({MarkerKind::kCircle, hue_of(curve), Paint::kClear, describe(curves[curve])});
  }
  if (curves.size() >= kHues.size()) {
    entries.push_back({MarkerKind::kCircle, hue_of(curves.size()), Paint::kClear,
                       std::to_string(curves.size() - entries.size()) + " other curves"});
  }
  if (band) entries.push_back({MarkerKind::kSquare, Paint::kGrid, Paint::kAxis, describe(*band)});
  for (std::size_t step = 0; band && step < band->range.size(); ++step) {
    if (!band->range[step]) continue;
    low = std::min(low, (*band->range[step])[0]);
    high = std::max(high, (*band->range[step])[1]);
  }
  const Picture legend = draw_legend(entries, width);
  const double top = legend.height + 8 + kTop;
  const Axis y_axis = make_axis(Quantity::kNumber, low, high, 5);
  Axis x_axis = make_axis(Quantity::kCount, 0, static_cast<double>(steps - 1), 8);
  const Box area{y_labels_width(y_axis), top, width - 10, top + (width < 450 ? 190 : 230)};
  Picture picture{"Loss by step", width, area.bottom + 42, {}};
  insert(picture, legend, {0, 0});
  draw_y_axis(picture, y_axis, area);
  draw_x_axis(picture, x_axis, area, GridLines::kHorizontal);
  picture.add(Label{{0, top - 12}, "loss", Anchor::kStart, Paint::kMuted, kTickSize});
  picture.add(
      Label{{area.right, area.bottom + 35}, "step", Anchor::kEnd, Paint::kMuted, kTickSize});
  if (band) draw_band(picture, *band, x_scale(x_axis, area), y_scale(y_axis, area));
  for (std::size_t curve = curves.size(); curve-- > 0;) {
    draw_curve(picture, curves[curve], hue_of(curve), x_scale(x_axis, area), y_scale(y_axis, area),
               area.bottom);
  }
  return picture;
}

}  // namespace rematch
