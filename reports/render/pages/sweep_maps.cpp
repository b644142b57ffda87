#include "reports/render/pages/sweep_maps.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "reports/render/format.h"
#include "reports/render/markup.h"
#include "reports/render/tables/grid.h"

namespace rematch::page {
namespace {

constexpr std::size_t kMostOpenMaps = 6;
constexpr std::size_t kMostNarrowColumns = 3;

// The cells of one policy at one place: several where only seeds differ.
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
    is_sure = is_sure && cell->is_step_sure;
  }
  if (ratios.empty()) return {table::kNotMeasured, 0};
  std::sort(ratios.begin(), ratios.end());
  const double middle = ratios[ratios.size() / 2];
  if (!is_sure) return {format_fixed(middle, 2) + " ?", 0};
  return {format_fixed(middle, 2), level_of(middle, {0.02, 0.05, 0.1, 0.2, 0.35})};
}

// The worst of them.
HeatCell judged_cell(const Cells& cells) {
  HeatCell worst{table::kNotMeasured, -kStrongestHeat - 1};
  for (const SweepCell* cell : cells) {
    const HeatCell one = verdict_cell(*cell->compared);
    if (one.level > worst.level) worst = one;
  }
  if (cells.empty()) worst.level = 0;
  return worst;
}

// Shapes of one map: those that share all but the main axis and the seed.
struct MapPlaces {
  std::string words;  // "batch 1"
  std::vector<std::size_t> shapes;
};

// Does a map have columns of this axis, or of all its values together?
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

Figure map_figure(const SweepModel& model, const std::string& title, const std::string& words,
                  const std::vector<MapPlaces>& maps, const std::vector<std::string>& anchors,
                  HeatCell (*cell_of)(const Cells&)) {
  std::vector<std::string> parts;
  for (const MapPlaces& places : maps) parts.push_back(one_map(model, places, anchors, cell_of));
  const bool is_narrow = maps.size() == 1 && num_columns(model) <= kMostNarrowColumns;
  return {title, words, some_open(parts, kMostOpenMaps, "of these"), Fold::kOpen,
          is_narrow ? FigureWidth::kColumn : FigureWidth::kWhole};
}

}  // namespace

HeatCell verdict_cell(const ComparedPoint& compared) {
  switch (compared.verdict.kind) {
    case VerdictKind::kFailed:
      return {std::string(to_string(compared.point->status)), kStrongestHeat};
    case VerdictKind::kDifferent:
      return {"different", kStrongestHeat};
    case VerdictKind::kMiscounted:
      return {"miscounted", kStrongestHeat};
    case VerdictKind::kReference:
      return {"reference", 0};
    case VerdictKind::kNoReference:
      return {"alone", 0};
    case VerdictKind::kFits:
      return {"fits", -5};
    case VerdictKind::kNoEffect:
      return {"no effect", 0};
    case VerdictKind::kLowersPeak:
      return {"lowers", -3};
    case VerdictKind::kNothingAgainstFull:
      return {"as full", 1};
    case VerdictKind::kSavesNothing:
      return {"no saving", 2};
    case VerdictKind::kCannotLower:
      return {"at floor", 0};
    case VerdictKind::kRaisesPeak:
      return {"raises", 4};
  }
  return {table::kNotMeasured, 0};
}

void add_sweep_maps(const SweepModel& model, const std::vector<std::string>& anchors,
                    std::vector<Figure>& figures) {
  const std::vector<MapPlaces> maps = maps_of(model);
  const std::string by = has_columns(model) ? " by " + model.axes.front().name : "";
  const bool has_seeds = std::any_of(model.axes.begin(), model.axes.end(),
                                     [](const SweepAxis& axis) { return axis.name == kSeedAxis; });
  const bool joins_seeds = has_seeds && model.axes.front().name != kSeedAxis;
  figures.push_back(map_figure(
      model, "Peak" + by,
      std::string("Share of the reference's peak; blue is lower, orange higher. The reference is "
                  "none, and full where none did not finish.") +
          (joins_seeds ? " Of several seeds the highest." : ""),
      maps, anchors, peak_cell));
  figures.push_back(map_figure(
      model, "Step time" + by,
      std::string("Over the reference's; blue is faster, orange slower. A question mark: not told "
                  "from noise.") +
          (joins_seeds ? " Of several seeds the median." : ""),
      maps, anchors, step_time_cell));
  figures.push_back(map_figure(
      model, "Verdict" + by,
      std::string("Lowers: a lower peak than the reference's. As full: full does so for no more "
                  "ops. At floor: no policy can lower it. Different: other bits.") +
          (joins_seeds ? " Of several seeds the worst." : ""),
      maps, anchors, judged_cell));
}

}  // namespace rematch::page
