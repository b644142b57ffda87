#include "reports/render/charts/front_panels.h"

#include <algorithm>

#include "reports/render/charts/lines.h"
#include "reports/render/charts/names.h"
#include "reports/render/charts/rows.h"

namespace rematch::chart {
namespace {

constexpr double kAxisTitle = 22;     // of the y axis
constexpr double kPanelHeight = 150;  // of the plot
constexpr double kPanelRight = 12;
constexpr double kPanelBottom = 40;
constexpr double kSpotRadius = 4;
constexpr double kLongestSpotName = 120;

Axis ratio_axis_of(Range range) {
  range.include(1);
  const double margin = std::pow(range.high / range.low, 0.05) * 1.01;
  return make_axis(Quantity::kRatio, range.low / margin, range.high * margin, 4);
}

void draw_steps(Picture& picture, const FrontPanel& panel, const Plot& plot) {
  std::vector<Position> corners;
  for (const FrontSpot& spot : panel.spots) {
    if (spot.is_on_front) corners.push_back(spot.at);
  }
  std::sort(corners.begin(), corners.end(),
            [](const Position& a, const Position& b) { return a.x < b.x; });
  for (std::size_t next = 1; next < corners.size(); ++next) {
    const Position from = plot(corners[next - 1]);
    const Position to = plot(corners[next]);
    picture.add(Path{{from, {to.x, from.y}, to}, Paint::kBlue, Paint::kClear, 1, true});
  }
}

// Names of the front first.
std::vector<Name> names_of(const std::vector<const FrontSpot*>& spots, const Plot& plot) {
  std::vector<Name> names;
  for (const FrontSpot* spot : spots) {
    Label label{{}, spot->name, Anchor::kStart, spot->is_on_front ? Paint::kInk : Paint::kMuted};
    label.has_halo = true;
    names.push_back({label, plot(spot->at)});
  }
  return names;
}

Picture draw_front_panel(const FrontPanels& chart, const FrontPanel& panel) {
  Picture picture{chart.title + ": " + panel.name, kColumnWidth};
  draw_head(picture, Panel{panel.name, "", panel.words}, {0, 0, kColumnWidth, kHead});
  Plot plot{{}, ratio_axis_of(chart.peaks), ratio_axis_of(chart.steps)};
  const double top = kHead + kAxisTitle;
  plot.area = {y_labels_width(plot.y), top, kColumnWidth - kPanelRight, top + kPanelHeight};
  draw_axes(picture, plot, 0, "Step time over the reference's", "Peak over the reference's",
            GridLines::kDrawn);
  picture.height = plot.area.bottom + kPanelBottom;
  draw_steps(picture, panel, plot);
  std::vector<const FrontSpot*> spots;
  for (const FrontSpot& spot : panel.spots) spots.push_back(&spot);
  std::stable_partition(spots.begin(), spots.end(),
                        [](const FrontSpot* spot) { return spot->is_on_front; });
  for (auto spot = spots.rbegin(); spot != spots.rend(); ++spot) {
    const Paint paint = (*spot)->is_on_front ? Paint::kBlue : Paint::kGrey;
    picture.add(Marker{MarkerKind::kCircle, plot((*spot)->at), kSpotRadius, paint, Paint::kSurface,
                       (*spot)->hint});
  }
  add_names(picture, names_of(spots, plot), {plot.area, kSpotRadius + 3, kLongestSpotName});
  return picture;
}

}  // namespace

std::vector<Picture> draw(const FrontPanels& chart) {
  std::vector<Picture> pictures;
  for (const FrontPanel& panel : chart.panels) pictures.push_back(draw_front_panel(chart, panel));
  return pictures;
}

}  // namespace rematch::chart
