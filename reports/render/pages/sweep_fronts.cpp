#include "reports/render/pages/sweep_fronts.h"

#include <algorithm>
#include <string>
#include <utility>

#include "reports/render/charts/front_panels.h"
#include "reports/render/charts/point.h"
#include "reports/render/format.h"

namespace rematch::page {
namespace {

constexpr std::size_t kMostOpenFronts = 6;
constexpr std::size_t kMostFronts = 24;

chart::FrontPanel front_panel(const SweepModel& model, const SweepShape& shape) {
  chart::FrontPanel panel{shape_words(model, shape), "", {}};
  if (shape.reference != nullptr) {
    const auto step = chart::measured_step(*shape.reference);
    panel.words = shape.reference->policy + ": " +
                  format_bytes(*chart::measured_peak(*shape.reference)) +
                  (step ? ", " + format_duration(*step) : "");
  }
  for (const chart::Point& point : chart::points_of(*shape.comparison)) {
    const auto cell =
        std::find_if(shape.cells.begin(), shape.cells.end(),
                     [&](const SweepCell& one) { return one.compared == point.compared; });
    if (cell == shape.cells.end() || !cell->peak_ratio || !cell->step_ratio) continue;
    panel.spots.push_back({{*cell->peak_ratio, *cell->step_ratio},
                           model.policies[static_cast<std::size_t>(cell - shape.cells.begin())],
                           point.hint(),
                           point.is_on_front});
  }
  return panel;
}

// At equal distances in the sweep's order, the first and the last among them.
std::vector<std::size_t> spread_indices(std::size_t num_all, std::size_t most) {
  std::vector<std::size_t> chosen;
  for (std::size_t index = 0; index < std::min(num_all, most); ++index) {
    chosen.push_back(num_all <= most ? index : index * (num_all - 1) / (most - 1));
  }
  return chosen;
}

}  // namespace

void add_sweep_fronts(const SweepModel& model, std::vector<Figure>& figures) {
  chart::FrontPanels chart{"Front", {}, {}, {}, {}};
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
  for (const std::size_t index : spread_indices(num_all, kMostFronts)) {
    shown.push_back(std::move(chart.panels[index]));
  }
  chart.panels = std::move(shown);
  std::vector<std::string> pictures;
  for (const chart::Picture& one : draw(chart)) {
    pictures.push_back("<div>" + chart::to_svg(one) + legend(one.legend) + "</div>\n");
  }
  std::string words =
      "Peak and step time over the reference's, on the same axes everywhere; lower left is better. "
      "Blue points are on the front of their comparison.";
  if (pictures.size() < num_all) {
    words += " Shown: " + format_part(pictures.size(), num_all) + " comparisons, evenly chosen.";
  }
  figures.push_back({"Fronts side by side", words, some_open(pictures, kMostOpenFronts, "fronts")});
}

}  // namespace rematch::page
