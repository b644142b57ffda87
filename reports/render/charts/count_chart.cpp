#include "reports/render/charts/count_chart.h"

#include <algorithm>

#include "reports/render/format.h"

namespace rematch {
namespace {

double count_of(const PointRecord& point, Phase phase, OpClass op_class) {
  if (!point.counts) return 0;
  const auto& by_class = point.counts->by_class[static_cast<std::size_t>(phase)];
  const auto found = by_class.find(op_class);
  return found == by_class.end() ? 0 : static_cast<double>(found->second);
}

// "attention forward"
std::string words(OpClass op_class) {
  std::string text(to_string(op_class));
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

Bar bar_of(const ChartPoint& charted, OpClass op_class) {
  const PointRecord& point = charted.point();
  Bar bar;
  bar.text = {charted.policy, charted.schedule, std::string(to_string(point.status)),
              describe_chart_point(charted), charted.baseline ? Weight::kBold : Weight::kNormal};
  if (!point.counts) return bar;
  const double forward = count_of(point, Phase::kForward, op_class);
  const double recompute = count_of(point, Phase::kRecompute, op_class);
  bar.text.value = format_fixed(forward + recompute, 0);
  bar.segments = {{forward, Paint::kBlue, format_fixed(forward, 0) + " in forward"},
                  {recompute, Paint::kOrange, format_fixed(recompute, 0) + " in recompute"}};
  return bar;
}

// "in 8 steps", where all points counted as many.
std::string over_steps(const std::vector<ChartPoint>& points) {
  int steps = 0;
  for (const ChartPoint& charted : points) {
    if (!charted.point().counts) continue;
    const int mine = charted.point().counts->counted_steps;
    if (steps != 0 && steps != mine) return "";
    steps = mine;
  }
  return steps == 0 ? "" : " in " + std::to_string(steps) + (steps == 1 ? " step" : " steps");
}

}  // namespace

bool has_counts(const std::vector<ChartPoint>& points, OpClass op_class) {
  return std::any_of(points.begin(), points.end(), [op_class](const ChartPoint& charted) {
    return count_of(charted.point(), Phase::kForward, op_class) > 0;
  });
}

BarChart count_chart(const std::vector<ChartPoint>& points, OpClass op_class) {
  BarChart chart;
  chart.title = "Executed " + words(op_class) + " ops";
  chart.axis_title = words(op_class) + " ops" + over_steps(points);
  chart.quantity = Quantity::kCount;
  chart.legend = {{MarkerKind::kSquare, Paint::kBlue, Paint::kClear, "forward"},
                  {MarkerKind::kSquare, Paint::kOrange, Paint::kClear, "recompute"}};
  for (const ChartPoint& charted : points) {
    chart.bars.push_back(bar_of(charted, op_class));
    const PointRecord& point = charted.point();
    if (point.policy == "none" && point.counts) {
      chart.reference =
          count_of(point, Phase::kForward, op_class) + count_of(point, Phase::kRecompute, op_class);
    }
  }
  if (chart.reference) {
    chart.legend.push_back({MarkerKind::kSquare, Paint::kInk, Paint::kClear, "none's count"});
  }
  return chart;
}

}  // namespace rematch
