#include "reports/render/pages/parts.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <set>
#include <utility>

#include "policies/base/format.h"
#include "reports/record/unplanned_counts.h"
#include "reports/render/charts/builders.h"
#include "reports/render/charts/chart.h"
#include "reports/render/noise.h"
#include "reports/render/tables/compare_table.h"
#include "reports/render/tables/report_table.h"

namespace rematch::page {
namespace {

constexpr std::size_t kMaxPanels = 24;
constexpr std::size_t kMaxOpenPanels = 3;  // number of columns on a wide screen
constexpr const char* kOrder = "baselines and the front first";

const ComparedPoint* lowest_peak(const std::vector<ComparedPoint>& points) {
  const ComparedPoint* lowest = nullptr;
  for (const ComparedPoint& compared : points) {
    const auto peak = measured_peak(*compared.point);
    if (!peak || compared.verdict.kind == VerdictKind::kDifferent) continue;
    if (lowest == nullptr || *peak < *measured_peak(*lowest->point)) lowest = &compared;
  }
  return lowest;
}

std::string price_of(const PointRecord& record) {
  if (!record.time || !record.time->ratio || record.policy == record.time->ratio->reference) {
    return "";
  }
  const StepRatioRecord& ratio = *record.time->ratio;
  if (is_too_noisy(ratio.interval)) return ", too noisy to measure";
  if (ratio.verdict == "unsure") return ", step time unsure";
  return ", " + format_fixed(ratio.ratio, 2) + " of " + ratio.reference + "'s step time";
}

std::vector<Tile> peak_tiles(const std::vector<ComparedPoint>& points) {
  std::vector<Tile> tiles;
  const PointRecord* none = points.front().none;
  std::optional<Bytes> none_peak;
  if (none != nullptr) none_peak = measured_peak(*none);
  if (none_peak) {
    const auto step = measured_step(*none);
    tiles.push_back({"without checkpointing", format_bytes(*none_peak),
                     step ? format_duration(*step) + " a step" : "Step time not measured"});
  }
  if (const ComparedPoint* lowest = lowest_peak(points)) {
    const Bytes peak = *measured_peak(*lowest->point);
    std::string change;
    if (none_peak.value_or(Bytes{}) > Bytes{}) {
      change = ", " + format_change(none_peak->count, peak.count);
    }
    tiles.push_back(
        {"lowest peak", format_bytes(peak), lowest->name() + change + price_of(*lowest->point)});
  }
  return tiles;
}

// Counts the points with equal bits, and the points that executed the predicted ops.
std::vector<Tile> proof_tiles(const std::vector<ComparedPoint>& points) {
  Share equal;
  Share as_predicted;
  for (const ComparedPoint& compared : points) {
    const auto& parity = compared.point->parity;
    if (parity && parity->loss_bits_equal && parity->gradient_bits_equal &&
        is_exact(*compared.point)) {
      equal.count(compared.verdict.kind != VerdictKind::kDifferent);
    }
    if (const auto problem = unplanned_counts(*compared.point)) {
      as_predicted.count(problem->empty());
    }
  }
  return {
      {"loss and gradients", equal.words(), "Compared points have the reference's bits"},
      {"executed ops", as_predicted.words(), "Checked points ran exactly the ops of their plan"}};
}

std::string prediction_words(const std::vector<ComparedPoint>& points) {
  Share equal;
  for (const ComparedPoint& compared : points) {
    const auto peak = measured_peak(*compared.point);
    if (!peak || !compared.point->memory->predicted_peak_allocated) continue;
    equal.count(*compared.point->memory->predicted_peak_allocated == *peak);
  }
  if (equal.all == 0) return "";
  return " The predicted peak equals the measured peak for " + equal.words() + " points.";
}

Figure front_figure(const std::vector<ComparedPoint>& points, const std::optional<Bytes>& limit,
                    const std::string& failures) {
  Figure figure{"The front: step time against peak memory"};
  const chart::Plane plane = chart::measured_front(points, limit);
  if (plane.is_empty()) {
    figure.words = "No point has both a peak and a step time, so there is no front. ";
  } else {
    figure.words =
        "Lower left is better. Vertical bars are 95 % intervals of the median step time; an arrow "
        "marks an interval that is cut off. Blue points are on the front. For each grey point, "
        "another point has no higher peak and is faster by more than noise." +
        prediction_words(points) + " ";
    figure.content = picture(draw(plane));
  }
  figure.words += failures;
  return figure;
}

// Folds all charts except attention ops, ratios of step times and memory at the peak.
void add_charts(const std::vector<ComparedPoint>& all, std::vector<Figure>& figures) {
  const std::vector<ComparedPoint> points = most_telling(all, kMaxChartRows);
  const std::string rest = left_out_words(points.size(), all.size(), kOrder);
  const auto add = [&](const chart::Rows& chart, Fold fold) {
    if (!chart.is_empty()) figures.push_back(chart_figure(chart, fold, rest));
  };
  const Fold fold = fold_of(points.size());
  add(chart::op_counts(points, OpClass::kAttentionForward), fold);
  add(chart::step_ratios(points), fold);
  add(chart::peak_holders(points), fold);
  add(chart::op_counts(points, OpClass::kMatmul), Fold::kFolded);
  add(chart::phase_times(points), Fold::kFolded);
  if (const chart::Lines chart = chart::losses(all); !chart.is_empty()) {
    figures.push_back(
        {chart.title, chart.words, picture(draw(chart)), Fold::kFolded, FigureWidth::kColumn});
  }
  for (const chart::Rows& chart : chart::class_times(points)) add(chart, Fold::kFolded);
}

// Returns the points that have a timeline, sorted by rank.
std::vector<ComparedPoint> with_timelines(const std::vector<ComparedPoint>& points) {
  std::vector<ComparedPoint> chosen;
  std::copy_if(points.begin(), points.end(), std::back_inserter(chosen),
               [](const ComparedPoint& compared) {
                 return compared.point->memory && compared.point->memory->timeline;
               });
  std::stable_sort(chosen.begin(), chosen.end(),
                   [](const auto& a, const auto& b) { return rank_of(a) < rank_of(b); });
  return chosen;
}

void add_memory(const std::vector<ComparedPoint>& all, std::vector<Figure>& figures) {
  std::vector<ComparedPoint> points = with_timelines(all);
  const std::size_t num_all = points.size();
  points.resize(std::min(points.size(), kMaxPanels));
  const chart::Lines chart = chart::memory_timelines(points);
  if (chart.is_empty()) return;
  std::vector<std::string> panels;
  for (const chart::Panel& panel : chart.panels) {
    panels.push_back(to_svg(draw(chart::Lines{panel.name, "", {panel}})));
  }
  figures.push_back({chart.title, chart.words + left_out_words(points.size(), num_all, kOrder),
                     page::legend(chart.legend) + some_open(panels, kMaxOpenPanels, "points")});
}

// Returns an anchor that does not change when other points are added: "s0-nth_first-2--on_demand".
std::string anchor_of_point(const std::string& anchor, const table::Row& row) {
  std::string name = row.cells[0] + "-" + row.cells[1];
  std::replace_if(
      name.begin(), name.end(),
      [](unsigned char letter) { return std::isalnum(letter) == 0 && letter != '_'; }, '-');
  return anchor + "-" + name;
}

// Gives each row an anchor. If several rows have the same anchor, only the first row gets it.
table::Grid with_anchors(table::Grid grid, const std::string& anchor) {
  std::set<std::string> known;
  for (table::Row& row : grid.rows) {
    std::string id = anchor_of_point(anchor, row);
    if (known.insert(id).second) row.id = std::move(id);
  }
  return grid;
}

}  // namespace

Part comparison_part(const PolicyComparison& comparison, const Environment& environment,
                     const std::string& anchor) {
  const std::vector<ComparedPoint>& points = comparison.points;
  Part part;
  part.tiles = peak_tiles(points);
  for (Tile& tile : proof_tiles(points)) part.tiles.push_back(std::move(tile));
  const std::string noise = noise_words(comparison);
  part.figures = {
      front_figure(points, chart::memory_limit(comparison, environment), failure_words(comparison)),
      {"Every policy",
       "Attention and matmul: executed in one step, in forward / recompute / backward. " + noise,
       grid(with_anchors(comparison_grid(comparison), anchor)), fold_of(comparison.points.size())}};
  add_charts(points, part.figures);
  add_memory(points, part.figures);
  return part;
}

namespace {

// True if all rows with this metric have the same value.
bool is_same_everywhere(const CompareRecord& record, Metric metric) {
  bool is_measured = false;
  for (const ComparedRow& row : record.rows) {
    for (const MetricRecord& measured : row.metrics) {
      if (measured.metric != metric || measured.verdict == CompareVerdict::kNotMeasured) continue;
      if (measured.verdict != CompareVerdict::kSame) return false;
      is_measured = true;
    }
  }
  return is_measured;
}

// A sentence replaces a chart that would show only ratios of 1.
std::string add_ratios(const CompareRecord& record, std::vector<Figure>& figures) {
  std::string same;
  for (const Metric metric : kAll<Metric>) {
    if (is_same_everywhere(record, metric)) {
      same += (same.empty() ? "The same in every row: " : ", ") + words_of(metric);
      continue;
    }
    chart::Rows chart = chart::metric_ratios(record, metric);
    if (chart.rows.empty()) continue;
    const std::size_t num_rows = chart.rows.size();
    chart.rows.resize(std::min(num_rows, kMaxChartRows));
    figures.push_back(
        chart_figure(chart, fold_of(chart.rows.size()),
                     left_out_words(chart.rows.size(), num_rows, "differences first")));
  }
  return same.empty() ? "" : same + ".";
}

void add_tables(const CompareRecord& record, std::vector<Figure>& figures) {
  CompareGrids compared = compare_grids(record);
  for (auto& [title, grid] : compared.grids) {
    table::drop_empty_columns(grid);  // some columns are empty without a GPU
    figures.push_back({title, "Step time: candidate over base with its 95 % interval.",
                       page::grid(grid), fold_of(grid.rows.size())});
  }
  if (compared.left_out_words.empty()) return;
  if (compared.grids.empty()) figures.push_back({"Rows"});
  figures.back().words += " " + compared.left_out_words;
}

void add_list(const char* title, const std::vector<std::string>& lines,
              std::vector<Figure>& figures) {
  if (!lines.empty()) figures.push_back({title, "", list(lines), fold_of(lines.size())});
}

}  // namespace

Part compare_part(const CompareRecord& record) {
  Part part;
  part.verdict = record.verdict;
  std::vector<std::string> environments;
  for (const NamedDifference& difference : record.environment_differences) {
    environments.push_back(difference.name + ": " + difference.base + " and " +
                           difference.candidate);
  }
  add_list("Measured in different environments", environments, part.figures);
  const std::string same = add_ratios(record, part.figures);
  part.facts = "Compares " + sources_words(record) + ". " + same + (same.empty() ? "" : " ") +
               noise_words(record);
  add_tables(record, part.figures);
  std::vector<std::string> explanations;
  for (const ComparedRow& row : record.rows) {
    for (const ExplanationRecord& explanation : row.explanations) {
      explanations.push_back(row.policy + " " + std::string(to_string(row.schedule)) + ", " +
                             words_of(explanation.metric) + ": " + explanation.sentence);
    }
  }
  add_list("What explains the differences", explanations, part.figures);
  add_list("Not compared", uncompared_lines(record), part.figures);
  return part;
}

}  // namespace rematch::page
