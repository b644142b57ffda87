#include "reports/render/pages/parts.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "policies/base/format.h"
#include "reports/render/markup.h"
#include "reports/render/tables/grid.h"

namespace rematch::page {
namespace {

constexpr std::size_t kMaxOpenMaps = 6;
constexpr std::size_t kMaxNarrowColumns = 3;

// The results of one policy that share a cell of the map. They differ only in the seed.
using Cells = std::vector<const SweepCell*>;

int level_of(double ratio, const std::array<double, kStrongestHeat>& steps) {
  const double change = ratio >= 1 ? ratio - 1 : 1 / ratio - 1;
  int level = 0;
  for (const double step : steps) level += change >= step ? 1 : 0;
  return ratio >= 1 ? level : -level;
}

HeatCell peak_cell(const Cells& cells) {
  std::optional<double> most;
  for (const SweepCell* cell : cells) {
    if (cell->peak_ratio) most = std::max(most.value_or(0), *cell->peak_ratio);
  }
  if (!most) return {table::kNotMeasured, 0};
  return {format_fixed(100 * *most, 0) + " %", level_of(*most, {0.01, 0.1, 0.3, 0.7, 1.5})};
}

HeatCell step_time_cell(const Cells& cells) {
  std::vector<double> ratios;
  bool is_sure = true;
  for (const SweepCell* cell : cells) {
    if (!cell->step_ratio) continue;
    ratios.push_back(*cell->step_ratio);
    // The ratio of the reference to itself has no interval, but is exact.
    const bool is_reference = cell->compared->verdict.kind == VerdictKind::kReference;
    is_sure = is_sure && (cell->is_step_sure || is_reference);
  }
  if (ratios.empty()) return {table::kNotMeasured, 0};
  std::sort(ratios.begin(), ratios.end());
  const double middle = ratios[ratios.size() / 2];
  if (!is_sure) return {format_fixed(middle, 2) + " ?", 0};
  return {format_fixed(middle, 2), level_of(middle, {0.02, 0.05, 0.1, 0.2, 0.35})};
}

// Returns the cell with the worst verdict.
HeatCell judged_cell(const Cells& cells) {
  HeatCell worst{table::kNotMeasured, -kStrongestHeat - 1};
  for (const SweepCell* cell : cells) {
    const HeatCell one = verdict_cell(*cell->compared);
    if (one.level > worst.level) worst = one;
  }
  if (cells.empty()) worst.level = 0;
  return worst;
}

// The comparisons of one map. They differ only in the seed and in the value of the first axis.
struct MapPlaces {
  std::string words;  // what these comparisons have in common, such as "batch 1"
  std::vector<std::size_t> shapes;
};

// True if a map has a column for each value of the first axis, false if there are no axes.
bool has_columns(const SweepModel& model) { return !model.axes.empty(); }

std::size_t num_columns(const SweepModel& model) {
  return has_columns(model) ? model.axes.front().values.size() : 1;
}

bool makes_maps(const SweepModel& model, std::size_t axis) {
  return axis > 0 && model.axes[axis].name != kSeedAxis;
}

std::vector<MapPlaces> maps_of(const SweepModel& model) {
  std::map<std::vector<std::size_t>, MapPlaces> maps;
  for (std::size_t index = 0; index < model.shapes.size(); ++index) {
    std::vector<std::size_t> key;
    std::string words;
    for (std::size_t axis = 0; axis < model.axes.size(); ++axis) {
      if (!makes_maps(model, axis)) continue;
      const std::size_t value = model.shapes[index].place[axis];
      key.push_back(value);
      words += (words.empty() ? "" : ", ") + model.axes[axis].name + " " +
               model.axes[axis].values[value];
    }
    MapPlaces& places = maps[key];
    places.words = words;
    places.shapes.push_back(index);
  }
  std::vector<MapPlaces> sorted;
  for (auto& [key, places] : maps) sorted.push_back(std::move(places));
  return sorted;
}

std::string one_map(const SweepModel& model, const MapPlaces& places,
                    const std::vector<std::string>& anchors, HeatCell (*cell_of)(const Cells&)) {
  std::vector<std::vector<std::size_t>> columns(num_columns(model));
  for (const std::size_t shape : places.shapes) {
    columns[has_columns(model) ? model.shapes[shape].place.front() : 0].push_back(shape);
  }
  HeatMap map{has_columns(model) ? model.axes.front().name : "", {}, {}};
  for (std::size_t column = 0; column < columns.size(); ++column) {
    const bool is_there = !columns[column].empty();
    map.columns.push_back({has_columns(model) ? model.axes.front().values[column] : "all",
                           is_there ? anchors[columns[column].front()] : ""});
  }
  for (std::size_t policy = 0; policy < model.policies.size(); ++policy) {
    HeatRow row{model.policies[policy], {}};
    for (const std::vector<std::size_t>& shapes : columns) {
      Cells cells;
      for (const std::size_t shape : shapes) {
        const SweepCell& cell = model.shapes[shape].cells[policy];
        if (cell.compared != nullptr) cells.push_back(&cell);
      }
      row.cells.push_back(cell_of(cells));
    }
    map.rows.push_back(std::move(row));
  }
  const std::string caption =
      places.words.empty() ? "" : "<h4>" + escape_markup(places.words) + "</h4>\n";
  return "<div>" + caption + heat_map(map) + "</div>\n";
}

// A figure with a map for each combination of values of all axes except the first.
struct MapFigure {
  const char* title;
  const char* words;
  const char* words_of_seeds;
  HeatCell (*cell_of)(const Cells&);
};

constexpr std::array<MapFigure, 3> kFigures = {
    {{"Peak",
      "Share of the reference's peak; blue is lower, orange higher. The reference is "
      "policy none. If the run of none failed, the reference is policy full.",
      " With several seeds, the cell shows the highest.", peak_cell},
     {"Step time",
      "Relative to the reference; blue is faster, orange slower. A question mark means within "
      "noise.",
      " With several seeds, the cell shows the median.", step_time_cell},
     {"Verdict",
      "Lower peak: lower than the reference's. Like full: full has a peak that is at least as low, "
      "and recomputes no more ops. At minimum: no policy can lower this peak. Not judged: no "
      "reference finished. Different: the bits differ from the reference's.",
      " With several seeds, the cell shows the worst.", judged_cell}}};

}  // namespace

HeatCell verdict_cell(const ComparedPoint& compared) {
  struct Cell {
    VerdictKind kind;
    const char* text;
    int level;
  };
  static constexpr std::array<Cell, 11> kCells = {
      {{VerdictKind::kDifferent, "different", kStrongestHeat},
       {VerdictKind::kMiscounted, "miscounted", kStrongestHeat},
       {VerdictKind::kReference, "reference", 0},
       {VerdictKind::kNoReference, "not judged", 0},
       {VerdictKind::kFits, "fits", -5},
       {VerdictKind::kNoEffect, "no effect", 0},
       {VerdictKind::kLowersPeak, "lower peak", -3},
       {VerdictKind::kNothingAgainstFull, "like full", 1},
       {VerdictKind::kSavesNothing, "same peak", 2},
       {VerdictKind::kCannotLower, "at minimum", 0},
       {VerdictKind::kRaisesPeak, "higher peak", 4}}};
  const auto* cell = std::ranges::find(kCells, compared.verdict.kind, &Cell::kind);
  if (cell != kCells.end()) return {cell->text, cell->level};
  return {std::string(to_string(compared.point->status)), kStrongestHeat};  // kFailed
}

void add_sweep_maps(const SweepModel& model, const std::vector<std::string>& anchors,
                    std::vector<Figure>& figures) {
  const std::vector<MapPlaces> maps = maps_of(model);
  const std::string by = has_columns(model) ? " by " + model.axes.front().name : "";
  const bool has_seeds = std::any_of(model.axes.begin(), model.axes.end(),
                                     [](const SweepAxis& axis) { return axis.name == kSeedAxis; });
  const bool is_narrow = maps.size() == 1 && num_columns(model) <= kMaxNarrowColumns;
  const FigureWidth width = is_narrow ? FigureWidth::kColumn : FigureWidth::kWhole;
  const bool joins_seeds = has_seeds && model.axes.front().name != kSeedAxis;
  for (const MapFigure& figure : kFigures) {
    std::vector<std::string> parts;
    for (const MapPlaces& places : maps) {
      parts.push_back(one_map(model, places, anchors, figure.cell_of));
    }
    figures.push_back({figure.title + by,
                       std::string(figure.words) + (joins_seeds ? figure.words_of_seeds : ""),
                       some_open(parts, kMaxOpenMaps, "of these"), Fold::kOpen, width});
  }
}

}  // namespace rematch::page
