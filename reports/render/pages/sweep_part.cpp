#include "reports/render/pages/parts.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "policies/base/format.h"
#include "reports/render/charts/plane.h"
#include "reports/render/markup.h"
#include "reports/render/tables/report_table.h"

namespace rematch::page {
namespace {

constexpr std::size_t kMaxFailureRows = 200;
// maximum number of comparisons that are listed for the same failure
constexpr std::size_t kMaxPlaces = 4;
constexpr std::size_t kMaxOpenFronts = 6;
constexpr std::size_t kMaxFronts = 24;

struct BestSaving {
  double peak_ratio = 1;
  const SweepShape* shape = nullptr;
  std::size_t policy = 0;
};

BestSaving best_saving(const SweepModel& model) {
  BestSaving best;
  for (const SweepShape& shape : model.shapes) {
    for (std::size_t policy = 0; policy < shape.cells.size(); ++policy) {
      const SweepCell& cell = shape.cells[policy];
      if (!cell.peak_ratio || *cell.peak_ratio >= best.peak_ratio) continue;
      if (cell.compared->verdict.kind == VerdictKind::kDifferent) continue;
      best = {*cell.peak_ratio, &shape, policy};
    }
  }
  return best;
}

std::vector<Tile> sweep_tiles(const SweepModel& model) {
  Share finished;
  for (const SweepShape& shape : model.shapes) {
    for (const ComparedPoint& compared : shape.comparison->points) {
      finished.count(compared.point->status == PointStatus::kOk);
    }
  }
  const std::size_t num_planned = model.shapes.size() + model.unmeasured.size();
  std::vector<Tile> tiles = {
      {"comparisons", format_part(model.shapes.size(), num_planned), "With a report"}};
  if (finished.all > 0) {
    tiles.push_back({"points", finished.words(), "Finished, of all points that were started"});
  }
  const BestSaving best = best_saving(model);
  if (best.shape == nullptr) return tiles;
  const SweepCell& cell = best.shape->cells[best.policy];
  std::string words = model.policies[best.policy] + " at " + shape_words(model, *best.shape);
  if (cell.step_ratio) words += ", " + format_fixed(*cell.step_ratio, 2) + " of the step time";
  tiles.push_back({"largest saving", format_change(best.peak_ratio - 1), words});
  return tiles;
}

struct Spread {
  std::vector<double> values;

  std::string text(std::string (*text_of)(double)) {
    if (values.empty()) return table::kNotMeasured;
    std::sort(values.begin(), values.end());
    const std::string middle = text_of(values[values.size() / 2]);
    const std::string low = text_of(values.front());
    const std::string high = text_of(values.back());
    return low == high ? middle : middle + " (" + low + " to " + high + ")";
  }
};

std::string percent_text(double ratio) { return format_fixed(100 * ratio, 0) + " %"; }

std::string ratio_text(double ratio) { return format_fixed(ratio, 2); }

// Returns each verdict with its count, the most frequent first, such as "lower peak: 20, fits: 4".
std::string counted(const std::map<std::string, std::size_t>& words) {
  std::vector<std::pair<std::string, std::size_t>> sorted(words.begin(), words.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [word, count] : sorted) {
    text += (text.empty() ? "" : ", ") + word + ": " + std::to_string(count);
  }
  return text;
}

table::Grid policy_grid(const SweepModel& model) {
  table::Grid grid{{{"policy", table::Alignment::kLeft},
                    {"finished"},
                    {"peak over reference"},
                    {"step over reference"},
                    {"on the front"},
                    {"verdicts", table::Alignment::kLeft}}};
  for (std::size_t policy = 0; policy < model.policies.size(); ++policy) {
    Share finished;
    std::size_t num_on_front = 0;
    Spread peaks;
    Spread steps;
    std::map<std::string, std::size_t> verdicts;
    for (const SweepShape& shape : model.shapes) {
      const SweepCell& cell = shape.cells[policy];
      if (cell.compared == nullptr) continue;
      finished.count(cell.compared->point->status == PointStatus::kOk);
      num_on_front += cell.compared->is_on_front ? 1 : 0;
      if (cell.peak_ratio) peaks.values.push_back(*cell.peak_ratio);
      if (cell.step_ratio) steps.values.push_back(*cell.step_ratio);
      ++verdicts[verdict_cell(*cell.compared).text];
    }
    grid.rows.push_back(
        {{model.policies[policy], finished.words(), peaks.text(percent_text),
          steps.text(ratio_text), format_part(num_on_front, finished.all), counted(verdicts)}});
  }
  return grid;
}

// A failure with its reason, which several points may share.
struct Failure {
  std::string policy;
  std::string outcome;
  std::string reason;
  bool operator<(const Failure& other) const {
    return std::tie(outcome, policy, reason) < std::tie(other.outcome, other.policy, other.reason);
  }
};

void add_failures(const SweepModel& model, std::vector<Figure>& figures) {
  std::map<Failure, std::vector<std::string>> places;
  for (const UnmeasuredComparison* one : model.unmeasured) {
    places[{"all policies", one->outcome == "missing" ? "not measured" : one->outcome, one->reason}]
        .push_back(shape_words(model, *one));
  }
  for (const SweepShape& shape : model.shapes) {
    for (std::size_t policy = 0; policy < shape.cells.size(); ++policy) {
      if (shape.cells[policy].compared == nullptr) continue;
      const PointRecord& point = *shape.cells[policy].compared->point;
      if (point.status == PointStatus::kOk) continue;
      places[{model.policies[policy], std::string(to_string(point.status)), point.reason}]
          .push_back(shape_words(model, shape));
    }
  }
  if (places.empty()) return;
  table::Grid grid{{{"policy", table::Alignment::kLeft},
                    {"ended", table::Alignment::kLeft},
                    {"times"},
                    {"where", table::Alignment::kLeft}},
                   "why"};
  for (const auto& [failure, where] : places) {
    if (grid.rows.size() == kMaxFailureRows) break;
    grid.rows.push_back(
        {{failure.policy, failure.outcome, std::to_string(where.size()), listed(where, kMaxPlaces)},
         failure.reason});
  }
  std::string words = "Failures of one policy with the same reason are listed once.";
  if (grid.rows.size() < places.size()) {
    words += " Shown: " + format_part(grid.rows.size(), places.size()) + ".";
  }
  figures.push_back(
      {"What failed or was skipped", words, page::grid(grid), fold_of(grid.rows.size())});
}

void add_comparisons(const SweepModel& model, const std::vector<std::string>& anchors,
                     std::vector<Figure>& figures) {
  std::string text;
  for (std::size_t index = 0; index < model.shapes.size(); ++index) {
    const SweepShape& shape = model.shapes[index];
    text += "<details><summary>" + escape_markup(shape_words(model, shape)) +
            "</summary>\n<div id=\"" + anchors[index] + "\">" +
            paragraph("after", failure_words(*shape.comparison)) +
            page::grid(comparison_grid(*shape.comparison)) + "</div></details>\n";
  }
  figures.push_back({"Every comparison",
                     "Attention and matmul: executed in one step, in forward / recompute / "
                     "backward. For charts, render the report of a single comparison.",
                     text, Fold::kFolded});
}

chart::FrontPanel front_panel(const SweepModel& model, const SweepShape& shape) {
  chart::FrontPanel panel{shape_words(model, shape), "", {}};
  if (shape.reference != nullptr) {
    const auto step = measured_step(*shape.reference);
    panel.words = shape.reference->policy + ": " + format_bytes(*measured_peak(*shape.reference)) +
                  (step ? ", " + format_duration(*step) : "");
  }
  for (const ComparedPoint& compared : shape.comparison->points) {
    const auto cell = std::find_if(shape.cells.begin(), shape.cells.end(),
                                   [&](const SweepCell& one) { return one.compared == &compared; });
    if (cell == shape.cells.end() || !cell->peak_ratio || !cell->step_ratio) continue;
    panel.spots.push_back({{*cell->peak_ratio, *cell->step_ratio},
                           model.policies[static_cast<std::size_t>(cell - shape.cells.begin())],
                           compared.hint(),
                           compared.is_on_front});
  }
  return panel;
}

// Returns at most `most` evenly spaced indices, including the first and the last.
std::vector<std::size_t> spread_indices(std::size_t num_all, std::size_t most) {
  std::vector<std::size_t> chosen;
  for (std::size_t index = 0; index < std::min(num_all, most); ++index) {
    chosen.push_back(num_all <= most ? index : index * (num_all - 1) / (most - 1));
  }
  return chosen;
}

// Draws the fronts of a sweep's comparisons as ratios to the reference, on shared axes. Adds no
// figure if no comparison has both peak and step time.
void add_sweep_fronts(const SweepModel& model, std::vector<Figure>& figures) {
  chart::FrontPanels chart{"Front", {}, {}, {}};
  for (const SweepShape& shape : model.shapes) {
    chart::FrontPanel panel = front_panel(model, shape);
    if (panel.spots.empty()) continue;
    for (const chart::FrontSpot& spot : panel.spots) {
      chart.peaks.include(spot.at.x);
      chart.steps.include(spot.at.y);
    }
    chart.panels.push_back(std::move(panel));
  }
  if (chart.panels.empty()) return;
  const std::size_t num_all = chart.panels.size();
  std::vector<chart::FrontPanel> shown;
  for (const std::size_t index : spread_indices(num_all, kMaxFronts)) {
    shown.push_back(std::move(chart.panels[index]));
  }
  chart.panels = std::move(shown);
  std::vector<std::string> pictures;
  for (const chart::Picture& one : draw(chart)) {
    pictures.push_back("<div>" + chart::to_svg(one) + legend(one.legend) + "</div>\n");
  }
  std::string words =
      "Peak and step time relative to the reference, on the same axes everywhere; lower left is "
      "better. Blue points are on the front of their comparison.";
  if (pictures.size() < num_all) {
    words += " Shown: " + format_part(pictures.size(), num_all) + " comparisons, evenly chosen.";
  }
  figures.push_back({"Fronts side by side", words, some_open(pictures, kMaxOpenFronts, "fronts")});
}

}  // namespace

Part sweep_part(const SweepModel& model, const std::string& anchor,
                std::vector<std::string> anchors) {
  const bool has_own_parts = !anchors.empty();
  for (std::size_t index = anchors.size(); index < model.shapes.size(); ++index) {
    anchors.push_back(anchor + "-of-" + std::to_string(index));
  }
  Part part;
  part.tiles = sweep_tiles(model);
  if (!model.shapes.empty()) {
    part.figures.push_back({"Policies over all shapes",
                            "The median over the comparisons, and their range.",
                            grid(policy_grid(model))});
    add_sweep_maps(model, anchors, part.figures);
    add_sweep_fronts(model, part.figures);
  }
  add_failures(model, part.figures);
  if (!has_own_parts && !model.shapes.empty()) add_comparisons(model, anchors, part.figures);
  return part;
}

}  // namespace rematch::page
