#include "reports/render/charts/forest_chart.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "reports/render/charts/axes.h"
#include "reports/render/charts/interval.h"
#include "reports/render/charts/legend.h"
#include "reports/render/format.h"

namespace rematch {
namespace {

constexpr double kLegendGap = 8;
constexpr double kMarkerRoom = 6;

Paint paint_of(const std::string& verdict) {
  if (verdict == "slower" || verdict == "higher") return Paint::kOrange;
  if (verdict == "faster" || verdict == "lower") return Paint::kBlue;
  return Paint::kGrey;
}

// Of a ratio; one that is not above 0 is as far away as any axis reaches.
double logarithm(double ratio) {
  constexpr double kFarthest = 28;  // of 1e12
  return ratio > 0 ? std::clamp(std::log(ratio), -kFarthest, kFarthest) : -kFarthest;
}

Axis axis_around_one(const ForestChart& chart, double width) {
  double low = 0;
  double high = 0;
  std::vector<double> reaches;
  for (const ForestRow& row : chart.rows) {
    if (!row.ratio) continue;
    const double ratio = logarithm(*row.ratio);
    low = std::min(low, ratio);
    high = std::max(high, ratio);
    if (!row.interval) continue;
    reaches.push_back(
        std::max(ratio - logarithm((*row.interval)[0]), logarithm((*row.interval)[1]) - ratio));
  }
  const double room = room_for_intervals(high - low, std::move(reaches), std::log(2));
  const double least = low - room;
  const double most = high + room;
  for (const ForestRow& row : chart.rows) {
    if (!row.ratio || !row.interval) continue;
    low = std::min(low, std::max(least, logarithm((*row.interval)[0])));
    high = std::max(high, std::min(most, logarithm((*row.interval)[1])));
  }
  const double margin = std::max(0.01, 0.04 * (high - low));
  return make_ratio_axis(std::exp(low - margin), std::exp(high + margin),
                         width < kNarrowChart ? 4 : 5);
}

void draw_row(Picture& picture, const ForestRow& row, const Box& lane, const Scale& scale) {
  if (!row.ratio) return;
  const Paint paint = paint_of(row.verdict);
  const double middle = (lane.top + lane.bottom) / 2;
  if (row.interval) {
    const auto end_at = [&](double ratio) {
      return IntervalEnd{{scale(ratio), middle}, scale.holds(ratio)};
    };
    draw_interval(picture, {end_at((*row.interval)[0]), end_at((*row.interval)[1]), paint, 2});
  }
  picture.add(Marker{MarkerKind::kCircle,
                     {scale(*row.ratio), middle},
                     4.5,
                     paint,
                     Paint::kSurface,
                     row.text.hint});
}

std::vector<LegendEntry> legend_of(const ForestChart& chart) {
  std::vector<LegendEntry> entries;
  for (const ForestRow& row : chart.rows) {
    const bool known = std::any_of(entries.begin(), entries.end(),
                                   [&row](const auto& entry) { return entry.text == row.verdict; });
    if (!known && !row.verdict.empty() && row.ratio) {
      entries.push_back({MarkerKind::kCircle, paint_of(row.verdict), Paint::kClear, row.verdict});
    }
  }
  return entries;
}

}  // namespace

Picture draw_forest(const ForestChart& chart, double width) {
  std::vector<RowText> rows;
  for (const ForestRow& row : chart.rows) rows.push_back(row.text);
  const Axis axis = axis_around_one(chart, width);
  RowFrame frame = draw_row_frame(rows, axis, chart.axis_title, width, kMarkerRoom);
  if (!frame.lanes.empty()) {
    draw_through_lanes(frame, frame.scale(1), Paint::kAxis);
  }
  for (std::size_t row = 0; row < chart.rows.size(); ++row) {
    draw_row(frame.picture, chart.rows[row], frame.lanes[row], frame.scale);
  }
  const Picture legend = draw_legend(legend_of(chart), width);
  const double below = legend.height == 0 ? 0 : legend.height + kLegendGap;
  Picture picture{chart.title, width, below + frame.picture.height, {}};
  insert(picture, legend, {0, 0});
  insert(picture, frame.picture, {0, below});
  return picture;
}

ForestChart step_ratio_chart(const std::vector<ChartPoint>& points) {
  ForestChart chart{"Step time over the reference's", "", {}};
  for (const ChartPoint& charted : points) {
    const PointRecord& point = charted.point();
    if (!point.time || !point.time->ratio) continue;
    const StepRatioRecord& ratio = *point.time->ratio;
    if (point.policy == ratio.reference) continue;
    ForestRow row;
    row.text = {charted.policy, charted.schedule, format_fixed(ratio.ratio, 2),
                describe_chart_point(charted), charted.baseline ? Weight::kBold : Weight::kNormal};
    if (ratio.interval) {
      row.text.value += " [" + format_fixed((*ratio.interval)[0], 2) + ", " +
                        format_fixed((*ratio.interval)[1], 2) + "]";
    }
    row.ratio = ratio.ratio;
    row.interval = ratio.interval;
    row.verdict = ratio.verdict;
    chart.axis_title = "step time / " + ratio.reference + ", 95 % interval";
    chart.rows.push_back(std::move(row));
  }
  return chart;
}

}  // namespace rematch
