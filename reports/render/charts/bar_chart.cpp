#include "reports/render/charts/bar_chart.h"

#include <algorithm>

#include "reports/render/charts/axes.h"

namespace rematch {
namespace {

constexpr double kLegendGap = 8;
// Between segments, of the background's colour.
constexpr double kSeam = 1;

double total_of(const Bar& bar) {
  double total = 0;
  for (const BarSegment& segment : bar.segments) total += segment.value;
  return total;
}

void draw_segments(Picture& picture, const Bar& bar, const Box& lane, const Scale& scale) {
  double value = 0;
  for (const BarSegment& segment : bar.segments) {
    const double from = scale(value);
    value += segment.value;
    const double width = scale(value) - from;
    if (width <= 0) continue;
    const double seam = width > 3 * kSeam ? kSeam : 0;
    picture.add(
        Rectangle{{from, lane.top, from + width - seam, lane.bottom}, segment.fill, segment.hint});
  }
}

}  // namespace

Picture draw_bars(const BarChart& chart, double width) {
  double largest = std::max(chart.at_least, chart.reference.value_or(0));
  std::vector<RowText> rows;
  for (const Bar& bar : chart.bars) {
    largest = std::max(largest, total_of(bar));
    rows.push_back(bar.text);
  }
  const Axis axis = make_axis(chart.quantity, 0, largest, width < kNarrowChart ? 4 : 5);
  RowFrame frame = draw_row_frame(
      rows, axis, chart.axis_title + (axis.unit.empty() ? "" : ", " + axis.unit), width, 0);
  for (std::size_t row = 0; row < chart.bars.size(); ++row) {
    draw_segments(frame.picture, chart.bars[row], frame.lanes[row], frame.scale);
  }
  if (chart.reference && !frame.lanes.empty()) {
    draw_through_lanes(frame, frame.scale(*chart.reference), Paint::kInk);
  }
  Picture picture{chart.title, width, 0, {}};
  const Picture legend = draw_legend(chart.legend, width);
  const double below = chart.legend.empty() ? 0 : legend.height + kLegendGap;
  insert(picture, legend, {0, 0});
  insert(picture, frame.picture, {0, below});
  picture.height = below + frame.picture.height;
  return picture;
}

}  // namespace rematch
