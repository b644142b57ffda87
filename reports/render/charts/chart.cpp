#include "reports/render/charts/chart.h"

#include <algorithm>

#include "policies/trace/joined.h"
#include "policies/trace/suggest.h"
#include "reports/render/charts/count_chart.h"
#include "reports/render/charts/forest_chart.h"
#include "reports/render/charts/front_chart.h"
#include "reports/render/charts/holder_chart.h"
#include "reports/render/charts/loss_chart.h"
#include "reports/render/charts/memory_chart.h"
#include "reports/render/charts/time_chart.h"

namespace rematch {
namespace {

constexpr double kMargin = 16;
constexpr int kPanelColumns = 3;

std::string not_in_report(const std::string& what) {
  return "the report has no " + what + "; measure it with rematch run, or draw another chart";
}

std::variant<Picture, Rejected> draw(const std::string& name, const std::vector<ChartPoint>& points,
                                     std::optional<Bytes> limit) {
  if (name == "front") {
    if (!has_front(points)) return Rejected{not_in_report("point with a peak and a step time")};
    return draw_front(points, limit, kChartWidth);
  }
  if (name == "memory") {
    if (std::none_of(points.begin(), points.end(), has_timeline)) {
      return Rejected{not_in_report("memory timeline")};
    }
    return draw_memory_panels(points, kPanelColumns);
  }
  if (name == "attention" || name == "matmul") {
    const OpClass op_class = name == "matmul" ? OpClass::kMatmul : OpClass::kAttentionForward;
    if (!has_counts(points, op_class)) return Rejected{not_in_report("op counts")};
    return draw_bars(count_chart(points, op_class), kRowsWidth);
  }
  if (name == "holders") {
    if (!has_holders(points)) return Rejected{not_in_report("peaks")};
    return draw_bars(holder_chart(points), kRowsWidth);
  }
  if (name == "time") {
    if (!has_times(points)) return Rejected{not_in_report("times of phases")};
    return draw_bars(phase_time_chart(points), kRowsWidth);
  }
  if (name == "ratio") {
    const ForestChart chart = step_ratio_chart(points);
    if (chart.rows.empty()) return Rejected{not_in_report("ratios of step times")};
    return draw_forest(chart, kRowsWidth);
  }
  const std::vector<LossCurve> curves = loss_curves(points);
  if (curves.empty()) return Rejected{not_in_report("losses")};
  return draw_losses(curves, loss_band(points), kRowsWidth);
}

}  // namespace

Picture with_margin(const Picture& inner) {
  Picture picture{inner.title, inner.width + 2 * kMargin, inner.height + 2 * kMargin, {}};
  insert(picture, inner, {kMargin, kMargin});
  return picture;
}

const std::vector<std::string>& chart_names() {
  static const std::vector<std::string> kNames = {"front",   "memory", "attention", "matmul",
                                                  "holders", "time",   "ratio",     "loss"};
  return kNames;
}

std::optional<Bytes> memory_limit(const Comparison& comparison, const Environment& environment) {
  const bool on_cpu = comparison.points.front().point->device == "cpu";
  return on_cpu ? environment.host_memory : environment.device_memory;
}

std::variant<Picture, Rejected> draw_chart(const std::string& name, const Comparison& comparison,
                                           const Environment& environment) {
  const std::vector<std::string>& names = chart_names();
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    return Rejected{"there is no chart '" + name + "'" + did_you_mean(name, names) +
                    "; the charts are " + joined(names)};
  }
  const std::vector<ChartPoint> points = chart_points_of(comparison);
  auto drawn = draw(name, points, memory_limit(comparison, environment));
  if (const auto* picture = std::get_if<Picture>(&drawn)) return with_margin(*picture);
  return drawn;
}

}  // namespace rematch
