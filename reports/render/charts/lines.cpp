#include "reports/render/charts/lines.h"

#include <algorithm>

#include "reports/render/charts/rows.h"

namespace rematch::chart {
namespace {

constexpr double kPanelGap = 24;         // horizontal distance between panels
constexpr double kAxisTitleHeight = 24;  // height of the y axis' title
constexpr double kPanelRight = 8;
constexpr double kBottom = 40;  // room for the x axis
constexpr double kStripHeight = 5;
constexpr double kStripGap = 3;
// With more samples than this, markers would touch.
constexpr std::size_t kMaxMarkers = 60;

double foot_of(const Panel& panel) { return panel.strip.empty() ? 0 : kStripHeight + kStripGap; }

double height_of(const Panel& panel) {
  return (panel.name.empty() ? 0 : kHead) + kAxisTitleHeight + panel.height + foot_of(panel) +
         kBottom;
}

// Returns all points of a panel's areas and curves, which determine the range of the axes.
std::vector<Position> corners_of(const Panel& panel) {
  std::vector<Position> corners;
  for (const Area& area : panel.areas) {
    corners.insert(corners.end(), area.corners.begin(), area.corners.end());
  }
  for (const Curve& curve : panel.curves) {
    for (std::size_t at = 0; at < curve.samples.size(); ++at) {
      if (curve.samples[at].y) corners.push_back({static_cast<double>(at), *curve.samples[at].y});
    }
  }
  return corners;
}

Axis y_axis_of(const Panel& panel) {
  Range range;
  for (const Position& corner : corners_of(panel)) range.include(corner.y);
  if (panel.at_least) {
    range.include(0);
    range.include(*panel.at_least);
  }
  return make_axis(panel.quantity, range.low, range.high, panel.height < 150 ? 3 : 5);
}

// Ends the x axis at the last step instead of at a round number.
Axis x_axis_of(const Panel& panel) {
  double last = 1;
  for (const Position& corner : corners_of(panel)) last = std::max(last, corner.x);
  for (const Curve& curve : panel.curves) {
    last = std::max(last, static_cast<double>(curve.samples.size()) - 1);
  }
  Axis axis = make_axis(Quantity::kCount, 0, last, 4);
  axis.high = last;
  while (axis.ticks.size() > 1 && axis.ticks.back().value > last) axis.ticks.pop_back();
  return axis;
}

void draw_areas(Picture& picture, const Panel& panel, const Plot& plot) {
  for (const Area& area : panel.areas) {
    Path path{{}, area.stroke, area.fill, 1, false, area.hint};
    for (const Position& corner : area.corners) path.corners.push_back(plot(corner));
    picture.add(std::move(path));
  }
}

void draw_curve(Picture& picture, const Curve& curve, const Plot& plot) {
  Path path{{}, curve.paint, Paint::kClear, 2, false, curve.hint};
  const auto flush = [&] {
    if (path.corners.size() > 1) picture.add(path);
    path.corners.clear();
  };
  std::vector<Marker> markers;
  for (std::size_t at = 0; at < curve.samples.size(); ++at) {
    const Sample& sample = curve.samples[at];
    const double x = plot.x(static_cast<double>(at));
    if (!sample.y) {
      flush();
      markers.push_back({MarkerKind::kCross,
                         {x, plot.area.bottom - 6},
                         4,
                         Paint::kClear,
                         curve.paint,
                         sample.hint});
      continue;
    }
    path.corners.push_back({x, plot.y(*sample.y)});
    if (curve.samples.size() > kMaxMarkers) continue;
    markers.push_back(
        {MarkerKind::kCircle, path.corners.back(), 3.5, curve.paint, Paint::kSurface, sample.hint});
  }
  flush();
  for (Marker& marker : markers) picture.add(std::move(marker));
}

void draw_strip(Picture& picture, const Panel& panel, const Plot& plot) {
  const double top = plot.area.bottom + kStripGap;
  for (const Stretch& part : panel.strip) {
    picture.add(Rectangle{
        {plot.x(part.from), top, plot.x(part.to), top + kStripHeight}, part.fill, part.hint});
  }
}

void draw_peak(Picture& picture, const Peak& peak, const Plot& plot) {
  const Position at = plot(peak.at);
  picture.add(
      Path{{at, {at.x, plot.area.bottom}}, Paint::kInk, Paint::kClear, 1, /*is_dashed=*/true});
  picture.add(Marker{MarkerKind::kCircle, at, 4, Paint::kInk, Paint::kSurface, peak.hint});
}

void draw_panel(Picture& picture, const Panel& panel, Box frame, double labels_width) {
  if (!panel.name.empty()) {
    draw_head(picture, panel, frame);
    frame.top += kHead;
  }
  Plot plot{{}, x_axis_of(panel), y_axis_of(panel)};
  const double top = frame.top + kAxisTitleHeight;
  plot.area = {frame.left + labels_width, top, frame.right - kPanelRight, top + panel.height};
  draw_axes(picture, plot, frame.left, panel.y_title, panel.x_title, GridLines::kNone,
            foot_of(panel));
  draw_areas(picture, panel, plot);
  for (auto curve = panel.curves.rbegin(); curve != panel.curves.rend(); ++curve) {
    draw_curve(picture, *curve, plot);
  }
  draw_strip(picture, panel, plot);
  if (panel.peak) draw_peak(picture, *panel.peak, plot);
}

}  // namespace

void draw_head(Picture& picture, const Panel& panel, const Box& frame) {
  Label name{{frame.left, frame.top + 13}, "", Anchor::kStart, Paint::kInk};
  name.is_bold = true;
  name.hint = panel.hint;
  const double note = panel.note.empty() ? 0 : text_width(panel.note) + 8;
  name.text = fit_text(panel.name, (frame.width() - note) / 1.15);
  picture.add(name);
  if (note > 0) {
    picture.add_words({extent(name).right + 8, name.at.y}, panel.note);
  }
  picture.add_words({frame.left, frame.top + 30}, fit_text(panel.words, frame.width()));
}

Picture draw(const Lines& chart) {
  const int num_columns = std::min(chart.num_columns, static_cast<int>(chart.panels.size()));
  Picture picture{chart.title, num_columns * (kColumnWidth + kPanelGap) - kPanelGap};
  picture.legend = chart.legend;
  double labels_width = 0;
  for (const Panel& panel : chart.panels) {
    labels_width = std::max(labels_width, y_labels_width(y_axis_of(panel)));
  }
  double top = 0;
  int column = 0;
  for (const Panel& panel : chart.panels) {
    const double left = column * (kColumnWidth + kPanelGap);
    const Box frame{left, top, left + kColumnWidth, top + height_of(panel)};
    draw_panel(picture, panel, frame, labels_width);
    picture.height = std::max(picture.height, frame.bottom);
    if (++column < num_columns) continue;
    column = 0;
    top = picture.height + (panel.name.empty() ? 0 : kPanelGap);
  }
  return picture;
}

}  // namespace rematch::chart
