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

constexpr double kTop = 24;     // above a panel, for its title
constexpr double kBottom = 42;  // below it, for its axis
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

using Values = std::vector<std::optional<double>>;                 // by step
using Ranges = std::vector<std::optional<std::array<double, 2>>>;  // by step

// One plane over the steps: the losses themselves, or what they differ by.
struct Panel {
  std::string title;
  std::vector<Values> curves;  // in the order of the losses' curves
  Ranges band;
  double height = 0;
};

// `values` are the curve's own losses or their differences; the hints say the losses.
void draw_curve(Picture& picture, const LossCurve& curve, const Values& values, Paint hue,
                const Scale& x, const Scale& y, double bottom) {
  Path path{{}, Paint::kClear, hue, 2, describe(curve)};
  const auto flush = [&] {
    if (path.corners.size() > 1) picture.add(path);
    path.corners.clear();
  };
  for (std::size_t step = 0; step < values.size(); ++step) {
    if (values[step]) {
      path.corners.push_back({x(static_cast<double>(step)), y(*values[step])});
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
  if (values.size() > 60) return;  // markers would touch
  for (std::size_t step = 0; step < values.size(); ++step) {
    if (!values[step]) continue;
    picture.add(Marker{MarkerKind::kCircle,
                       {x(static_cast<double>(step)), y(*values[step])},
                       kMarkerRadius,
                       hue,
                       Paint::kSurface,
                       describe_step(curve, step)});
  }
}

// The band's stretches without a gap, each closed along its lower edge.
void draw_band(Picture& picture, const Ranges& band, const std::string& hint, const Scale& x,
               const Scale& y) {
  Path path{{}, Paint::kGrid, Paint::kAxis, 1, hint};
  std::vector<Position> lower;
  const auto flush = [&] {
    path.corners.insert(path.corners.end(), lower.rbegin(), lower.rend());
    if (lower.size() > 1) picture.add(path);
    path.corners.clear();
    lower.clear();
  };
  for (std::size_t step = 0; step < band.size(); ++step) {
    if (!band[step]) {
      flush();
      continue;
    }
    const double across = x(static_cast<double>(step));
    path.corners.push_back({across, y((*band[step])[1])});
    lower.push_back({across, y((*band[step])[0])});
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

std::vector<LegendEntry> legend_of(const std::vector<LossCurve>& curves,
                                   const std::optional<LossBand>& band) {
  std::vector<LegendEntry> entries;
  for (std::size_t curve = 0; curve < std::min(curves.size(), kHues.size() - 1); ++curve) {
    entries.push_back({MarkerKind::kCircle, hue_of(curve), Paint::kClear, describe(curves[curve])});
  }
  if (curves.size() >= kHues.size()) {
    entries.push_back({MarkerKind::kCircle, hue_of(curves.size()), Paint::kClear,
                       std::to_string(curves.size() - entries.size()) + " other curves"});
  }
  if (band) entries.push_back({MarkerKind::kSquare, Paint::kGrid, Paint::kAxis, describe(*band)});
  return entries;
}

Panel loss_panel(const std::vector<LossCurve>& curves, const std::optional<LossBand>& band,
                 double height) {
  Panel panel{"loss", {}, band ? band->range : Ranges{}, height};
  for (const LossCurve& curve : curves) panel.curves.push_back(curve.loss);
  return panel;
}

Values less(const Values& values, const Values& reference) {
  Values differences(values.size());
  for (std::size_t step = 0; step < std::min(values.size(), reference.size()); ++step) {
    if (values[step] && reference[step]) differences[step] = *values[step] - *reference[step];
  }
  return differences;
}

// On the axis of the losses a band of a thousandth cannot be seen. Nothing where nothing differs.
std::optional<Panel> difference_panel(const std::vector<LossCurve>& curves,
                                      const std::optional<LossBand>& band, double height) {
  if (!band || (curves.size() == 1 && band->widest() == 0)) return std::nullopt;
  const Values& reference = band->first_run;
  Panel panel{"loss less that of " + band->name + "'s first run", {}, {}, height};
  for (const LossCurve& curve : curves) panel.curves.push_back(less(curve.loss, reference));
  panel.band.resize(band->range.size());
  for (std::size_t step = 0; step < band->range.size(); ++step) {
    if (!band->range[step]) continue;  // else every run is finite there
    const auto [low, high] = *band->range[step];
    panel.band[step] = {low - *reference[step], high - *reference[step]};
  }
  return panel;
}

Axis value_axis(const Panel& panel) {
  double low = INFINITY;
  double high = -INFINITY;
  const auto include = [&](double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  };
  for (const Values& values : panel.curves) {
    for (const std::optional<double>& value : values) {
      if (value) include(*value);
    }
  }
  for (const auto& range : panel.band) {
    if (!range) continue;
    for (const double end : *range) include(end);
  }
  return make_axis(Quantity::kNumber, low, high, panel.height < 150 ? 3 : 5);
}

// Below what the picture has, which grows by it.
void draw_panel(Picture& picture, const Panel& panel, const Axis& y_axis,
                const std::vector<LossCurve>& curves, const std::string& band_hint, double left) {
  std::size_t steps = 1;
  for (const Values& values : panel.curves) steps = std::max(steps, values.size());
  const Axis x_axis = make_axis(Quantity::kCount, 0, static_cast<double>(steps - 1), 8);
  const double top = picture.height + kTop;
  const Box area{left, top, picture.width - 10, top + panel.height};
  picture.height = area.bottom + kBottom;
  draw_y_axis(picture, y_axis, area);
  draw_x_axis(picture, x_axis, area, GridLines::kHorizontal);
  picture.add(Label{{0, top - 12}, panel.title, Anchor::kStart, Paint::kMuted, kTickSize});
  picture.add(
      Label{{area.right, area.bottom + 35}, "step", Anchor::kEnd, Paint::kMuted, kTickSize});
  const Scale x = x_scale(x_axis, area);
  const Scale y = y_scale(y_axis, area);
  draw_band(picture, panel.band, band_hint, x, y);
  for (std::size_t curve = curves.size(); curve-- > 0;) {
    draw_curve(picture, curves[curve], panel.curves[curve], hue_of(curve), x, y, area.bottom);
  }
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
    const std::vector<StepRecord>& steps = charted.point().steps;
    if (charted.compared->repeats.empty() || steps.empty()) continue;
    LossBand band{name_of(charted), charted.compared->repeats.size() + 1, {}, {}};
    for (std::size_t step = 0; step < steps.size(); ++step) {
      band.first_run.push_back(steps[step].loss);
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
  const Picture legend = draw_legend(legend_of(curves, band), width);
  Picture picture{"Loss by step", width, legend.height + 8, {}};
  insert(picture, legend, {0, 0});
  std::vector<Panel> panels = {loss_panel(curves, band, width < kNarrowChart ? 190 : 230)};
  if (auto differences = difference_panel(curves, band, 110)) {
    panels.push_back(std::move(*differences));
  }
  std::vector<Axis> axes;
  double left = 0;  // the steps of one panel are below those of the other
  for (const Panel& panel : panels) {
    axes.push_back(value_axis(panel));
    left = std::max(left, y_labels_width(axes.back()));
  }
  const std::string hint = band ? describe(*band) : "";
  for (std::size_t index = 0; index < panels.size(); ++index) {
    draw_panel(picture, panels[index], axes[index], curves, hint, left);
  }
  return picture;
}

}  // namespace rematch
