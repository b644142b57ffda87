#include "reports/render/page_section.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "reports/render/charts/chart.h"
#include "reports/render/charts/count_chart.h"
#include "reports/render/charts/forest_chart.h"
#include "reports/render/charts/front_chart.h"
#include "reports/render/charts/holder_chart.h"
#include "reports/render/charts/loss_chart.h"
#include "reports/render/charts/memory_chart.h"
#include "reports/render/charts/time_chart.h"
#include "reports/render/format.h"
#include "reports/render/markup.h"
#include "reports/render/page_figure.h"
#include "reports/render/page_table.h"

namespace rematch {
namespace {

constexpr double kPanel = 340;
constexpr std::size_t kMostPanels = 24;
constexpr std::size_t kMostOpenPanels = 3;  // a row of a wide screen
constexpr const char* kOrder = "baselines and the front first";

const ChartPoint* lowest_peak(const std::vector<ChartPoint>& points) {
  const ChartPoint* lowest = nullptr;
  for (const ChartPoint& charted : points) {
    const auto peak = measured_peak(charted.point());
    if (!peak || charted.compared->verdict.kind == VerdictKind::kDifferent) continue;
    if (lowest == nullptr || *peak < *measured_peak(lowest->point())) lowest = &charted;
  }
  return lowest;
}

std::string price_of(const PointRecord& point) {
  if (!point.time || !point.time->ratio || point.policy == point.time->ratio->reference) return "";
  return ", " + format_fixed(point.time->ratio->ratio, 2) + " of " + point.time->ratio->reference +
         "'s step time";
}

std::string peak_tiles(const std::vector<ChartPoint>& points) {
  std::string text;
  const PointRecord* none = points.front().compared->none;
  if (none != nullptr && measured_peak(*none)) {
    const auto step = measured_step(*none);
    text += page_tile(
        "without checkpointing", format_bytes(*none->memory->peak_allocated),
        step ? format_duration(std::chrono::nanoseconds(static_cast<std::int64_t>(*step))) +
                   " a step"
             : "step time not measured");
  }
  if (const ChartPoint* lowest = lowest_peak(points)) {
    std::string more = name_of(*lowest);
    if (none != nullptr && measured_peak(*none) && *measured_peak(*none) > 0) {
      more += ", " + format_change(*measured_peak(lowest->point()) / *measured_peak(*none) - 1);
    }
    text += page_tile("lowest peak", format_bytes(*lowest->point().memory->peak_allocated),
                      more + price_of(lowest->point()));
  }
  return text;
}

// How many of all points hold what they promise.
std::string proof_tiles(const std::vector<ChartPoint>& points) {
  std::size_t with_parity = 0;
  std::size_t equal = 0;
  std::size_t predicted = 0;
  std::size_t as_predicted = 0;
  for (const ChartPoint& charted : points) {
    const PointRecord& point = charted.point();
    if (point.parity && point.parity->loss_bits_equal && point.parity->gradient_bits_equal) {
      ++with_parity;
      if (charted.compared->verdict.kind != VerdictKind::kDifferent) ++equal;
    }
    if (point.effect && point.effect->counts_equal_prediction) {
      ++predicted;
      if (*point.effect->counts_equal_prediction) ++as_predicted;
    }
  }
  return page_tile("loss and gradients",
                   std::to_string(equal) + " of " + std::to_string(with_parity),
                   "compared points have the reference's bits") +
         page_tile("executed ops",
                   std::to_string(as_predicted) + " of " + std::to_string(predicted),
                   "checked points ran exactly what their plan says");
}

// "x of y points have ..., the predicted peak equals the measured one".
std::string prediction_words(const std::vector<ChartPoint>& points) {
  std::size_t predicted = 0;
  std::size_t equal = 0;
  for (const ChartPoint& charted : points) {
    const PointRecord& point = charted.point();
    if (!measured_peak(point) || !point.memory->predicted_peak_allocated) continue;
    ++predicted;
    if (*point.memory->predicted_peak_allocated == *point.memory->peak_allocated) ++equal;
  }
  if (predicted == 0) return "";
  return " The predicted peak equals the measured one for " + std::to_string(equal) + " of " +
         std::to_string(predicted) + " points.";
}

std::string failure_words(const std::vector<ChartPoint>& points) {
  std::string names;
  std::size_t failed = 0;
  for (const ChartPoint& charted : points) {
    const PointRecord& point = charted.point();
    if (point.status == PointStatus::kOk) continue;
    if (++failed > 8) continue;
    names += (names.empty() ? "" : ", ") + name_of(charted) + " (" +
             std::string(to_string(point.status));
    if (point.memory && point.memory->peak_allocated) {
      names += " at " + format_bytes(*point.memory->peak_allocated);
    }
    names += ")";
  }
  if (failed == 0) return "";
  if (failed > 8) names += " and " + std::to_string(failed - 8) + " more";
  return " Did not finish: " + names + ".";
}

PageFigure front_figure(const std::vector<ChartPoint>& points, std::optional<Bytes> limit) {
  PageFigure figure{"The front: step time against peak memory", "", ""};
  if (!has_front(points)) {
    figure.words = "No point has both a peak and a step time, so there is no front.";
    figure.words += failure_words(points);
    return figure;
  }
  figure.words =
      "Lower left is better. The vertical bars are 95 % intervals of the median step time; one "
      "with "
      "an arrow goes on. Grey points are dominated: a blue one needs no more memory and no more "
      "time." +
      prediction_words(points) + failure_words(points);
  figure.content = for_both_widths([&](double width) { return draw_front(points, limit, width); },
                                   kFullPageWidth);
  return figure;
}

PageFigure bar_figure(const BarChart& chart, const std::string& words, Fold fold) {
  return {chart.title, words,
          for_both_widths([&](double width) { return draw_bars(chart, width); }, kHalfPageWidth),
          fold, FigureWidth::kHalf};
}

PageFigure loss_figure(const std::vector<ChartPoint>& all, const std::vector<LossCurve>& curves) {
  const std::optional<LossBand> band = loss_band(all);
  return {"Loss",
          std::string("Policies with the same bits share one curve.") +
              (band ? " The band is what the reference's own runs differ by." : ""),
          for_both_widths([&](double width) { return draw_losses(curves, band, width); },
                          kHalfPageWidth),
          Fold::kFolded, FigureWidth::kHalf};
}

// What was recomputed and what it costs is open; the rest says why.
std::vector<PageFigure> row_figures(const std::vector<ChartPoint>& all) {
  const std::vector<ChartPoint> points = most_telling(all, kMostChartRows);
  const std::string rest = words_left_out(points.size(), all.size(), kOrder);
  std::vector<PageFigure> figures;
  if (has_counts(points, OpClass::kAttentionForward)) {
    figures.push_back(bar_figure(count_chart(points, OpClass::kAttentionForward),
                                 "What really ran: a policy that recomputes all doubles it." + rest,
                                 fold_of(points.size())));
  }
  const ForestChart ratios = step_ratio_chart(points);
  if (!ratios.rows.empty()) {
    figures.push_back(
        {ratios.title, kForestWords + rest,
         for_both_widths([&](double width) { return draw_forest(ratios, width); }, kHalfPageWidth),
         fold_of(ratios.rows.size()), FigureWidth::kHalf});
  }
  if (has_counts(points, OpClass::kMatmul)) {
    figures.push_back(bar_figure(count_chart(points, OpClass::kMatmul),
                                 "Forward and recompute; backward's own are not in it." + rest,
                                 Fold::kFolded));
  }
  if (has_holders(points)) {
    figures.push_back(bar_figure(
        holder_chart(points), "Blue and orange are what a policy decides about; grey stays." + rest,
        Fold::kFolded));
  }
  if (has_times(points)) {
    figures.push_back(bar_figure(
        phase_time_chart(points),
        "Recompute runs inside backward, when backward asks for it." + rest, Fold::kFolded));
  }
  const std::vector<LossCurve> curves = loss_curves(all);
  if (!curves.empty()) figures.push_back(loss_figure(all, curves));
  const char* source = class_time_source(points) == TimeSource::kKernels
                           ? "What the device's own records say of a step."
                           : "A step with every op timed by itself, after the timed steps.";
  for (const BarChart& chart : class_time_charts(points)) {
    figures.push_back(bar_figure(chart, source + rest, Fold::kFolded));
  }
  return figures;
}

std::string panels_of(const std::vector<ChartPoint>& points, double highest) {
  std::string panels;
  for (const ChartPoint& charted : points) panels += to_svg(draw_memory(charted, highest, kPanel));
  return "<div class=\"panels\">\n" + panels + "</div>\n";
}

// Those of `points` that are not among `chosen`.
std::vector<ChartPoint> others(const std::vector<ChartPoint>& points,
                               const std::vector<ChartPoint>& chosen) {
  std::vector<ChartPoint> rest;
  std::copy_if(points.begin(), points.end(), std::back_inserter(rest), [&](const ChartPoint& one) {
    return std::none_of(chosen.begin(), chosen.end(),
                        [&](const ChartPoint& other) { return one.compared == other.compared; });
  });
  return rest;
}

std::optional<PageFigure> memory_figure(const std::vector<ChartPoint>& all) {
  std::vector<ChartPoint> with_timeline;
  std::copy_if(all.begin(), all.end(), std::back_inserter(with_timeline), has_timeline);
  if (with_timeline.empty()) return std::nullopt;
  const std::vector<ChartPoint> points = most_telling(with_timeline, kMostPanels);
  const std::vector<ChartPoint> open = most_telling(points, kMostOpenPanels);
  const std::vector<ChartPoint> rest = others(points, open);
  const double highest = highest_timeline(points);
  const auto legend = [](double width) { return draw_legend(memory_legend(), width); };
  PageFigure figure{
      "Memory over one step, by holder",
      "Bytes at op boundaries; one scale for all. The strip below tells the phase: forward blue, "
      "backward green, recompute orange, optimizer grey." +
          words_left_out(points.size(), with_timeline.size(), kOrder),
      for_both_widths(legend, kFullPageWidth) + panels_of(open, highest)};
  if (!rest.empty()) {
    figure.content += "<details><summary>" + std::to_string(rest.size()) +
                      " more points</summary>\n" + panels_of(rest, highest) + "</details>\n";
  }
  return figure;
}

}  // namespace

PagePart page_section(const Comparison& comparison, const Environment& environment) {
  const std::vector<ChartPoint> points = chart_points_of(comparison);
  PagePart part;
  part.head = "<div class=\"tiles\">\n" + peak_tiles(points) + proof_tiles(points) + "</div>\n";
  part.figures = {front_figure(points, memory_limit(comparison, environment)),
                  {"Every policy",
                   "Attention and matmul: executed in one step, in forward / recompute / backward.",
                   page_table(comparison), fold_of(comparison.points.size())}};
  for (PageFigure& figure : row_figures(points)) part.figures.push_back(std::move(figure));
  if (auto memory = memory_figure(points)) part.figures.push_back(*std::move(memory));
  return part;
}

}  // namespace rematch
