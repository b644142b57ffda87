#include "reports/render/pages/parts.h"

#include <algorithm>

#include "policies/base/format.h"
#include "policies/base/text.h"
#include "policies/search/front/hypervolume.h"
#include "reports/render/charts/builders.h"
#include "reports/render/tables/front_table.h"

namespace rematch::page {
namespace {

constexpr std::size_t kMaxFrontPoints = 100;

// Returns the measured points, the knee, and some other points of the front.
std::vector<std::size_t> representative_points(const Front& front) {
  std::vector<PlanePoint> plane;
  for (const FrontPoint& point : front.points) {
    plane.push_back({point.figures.peak.count, point.step_time.count()});
  }
  std::vector<std::size_t> shown = spread_points(plane, kMaxFrontPoints);
  for (std::size_t index = 0; index < front.points.size(); ++index) {
    if (front.points[index].measured || index == front.knee) shown.push_back(index);
  }
  std::sort(shown.begin(), shown.end());
  shown.erase(std::unique(shown.begin(), shown.end()), shown.end());
  return shown;
}

// Returns the peak, and what it costs. `name` is the name of the point, such as "point 3".
Tile tile_of(const Front& front, const std::string& title, const std::string& name,
             const FrontPoint& point) {
  const FrontPoint& none = front.reference();
  std::vector<std::string> words;
  if (!name.empty()) words.push_back(name);
  if (point.figures.num_recomputed == 0) {
    words.emplace_back("nothing recomputed");
  } else if (none.figures.peak.count != 0 && none.step_time.count() != 0) {
    words.push_back(
        format_change(none.figures.peak.count, point.figures.peak.count) + " for " +
        format_change(predicted_step(front, none).count(), predicted_step(front, point).count()) +
        " step time");
  }
  return Tile{title, format_bytes(point.figures.peak), capitalized(joined(words))};
}

// Returns the plan that the page recommends, within the user's limit or the device's memory. Absent
// if neither is known.
std::optional<Tile> lead_tile(const FrontRecord& record) {
  const std::string title =
      record.max_slowdown_ratio
          ? "lowest peak for " + format_percent(*record.max_slowdown_ratio) + " more step time"
          : "fastest plan that fits";
  if (const std::optional<Lead> lead = lead_of(record)) {
    return tile_of(record.front, title, lead->name, lead->point);
  }
  if (record.max_slowdown_ratio || !(record.budget || record.device_memory)) return std::nullopt;
  return Tile{title, "none",
              std::string("No point fits the ") + (record.budget ? "budget" : "device")};
}

std::vector<Tile> front_tiles(const FrontRecord& record) {
  const Front& front = record.front;
  const FrontPoint& none = front.reference();
  const auto tile_of_point = [&](const std::string& title, std::size_t index) {
    return tile_of(front, title, "point " + std::to_string(index), front.points[index]);
  };
  std::vector<Tile> tiles = {{"without checkpointing", format_bytes(none.figures.peak),
                              format_duration(predicted_step(front, none)) + " a step"},
                             tile_of_point("lowest peak", 0),
                             tile_of_point("knee", front.knee)};
  if (std::optional<Tile> lead = lead_tile(record)) tiles.push_back(*std::move(lead));
  if (const auto& measurement = front.measurement) {
    tiles.push_back({"peaks as predicted",
                     std::to_string(measurement->num_equal_peaks) + " of " +
                         std::to_string(measurement->num_measured),
                     "Measured peaks equal the predicted peaks to the byte"});
  }
  return tiles;
}

std::string front_words(const FrontRecord& record, std::size_t num_shown) {
  const Front& front = record.front;
  const std::string source = front.measurement
                                 ? measurement_words(*front.measurement)
                                 : "No plan was run: peaks are simulated, times are sums of " +
                                       std::string(to_string(record.time_source)) + " op times.";
  const std::string warning = calibration_warning(record);
  const std::string ceilings = ceilings_words(record);
  return warning + (warning.empty() ? "" : " ") + "Lower left is better. " + source +
         (ceilings.empty() ? "" : " " + ceilings) +
         left_out_words(num_shown, front.points.size(), "chosen by the area that they add") +
         " The numbers refer to the points in the table below.";
}

std::string points_words(const FrontRecord& record, const std::string& file) {
  const std::string lead = lead_words(record);
  return lead + (lead.empty() || lead.ends_with('.') ? " " : ". ") +
         capitalized(exactness_words(record)) + ". " + next_words(record, {file, ""});
}

// If the detail shows the plan shortened, adds the whole plan as text that the reader can unfold.
void fold_plan(const FrontPoint& point, table::Row& row) {
  if (short_saves(point) != point.saves) row.folded = capitalized(point.saves) + ".";
}

table::Grid points_with_anchors(const FrontRecord& record, const std::vector<std::size_t>& shown,
                                const std::string& anchor) {
  table::Grid grid = points_grid(record, shown);
  for (std::size_t row = 0; row < shown.size(); ++row) {
    grid.rows[row].id = anchor + "-p" + std::to_string(shown[row]);
    fold_plan(record.front.points[shown[row]], grid.rows[row]);
  }
  if (record.simple) {
    grid.rows.back().id = anchor + "-simple";
    fold_plan(record.simple->point, grid.rows.back());
  }
  return grid;
}

}  // namespace

Part front_part(const FrontRecord& record, const std::string& file, const std::string& anchor) {
  const Front& front = record.front;
  const std::vector<std::size_t> shown = representative_points(front);
  Part part;
  part.tiles = front_tiles(record);
  part.verdict = front.verdict;
  part.figures = {{"The front: step time against peak memory", front_words(record, shown.size()),
                   picture(draw(chart::searched_front(record, shown)))},
                  {"Points", points_words(record, file),
                   grid(points_with_anchors(record, shown, anchor)), fold_of(shown.size())}};
  std::vector<std::size_t> rows = shown;
  rows.resize(std::min(rows.size(), kMaxChartRows));
  const chart::Rows kept = chart::kept_layers(record, rows);
  if (!kept.is_empty()) {
    part.figures.push_back(
        spread_figure(kept, fold_of(rows.size()),
                      left_out_words(rows.size(), shown.size(), "lowest peaks first")));
  }
  if (!front.baselines.empty()) {
    part.figures.push_back({"Baselines",
                            "Known policies, and planners of other systems, on the same model. " +
                                hypervolume_words(front) + ".",
                            grid(baselines_grid(record)), Fold::kFolded});
  }
  if (!front.measurement) return part;
  part.figures.push_back({"Predicted and measured",
                          "Step times are predicted by the line through the anchors, which were "
                          "measured first; the error is the prediction "
                          "divided by the measurement, minus 1.",
                          grid(measured_grid(front)), Fold::kFolded});
  part.figures.push_back(
      {"Families of baselines",
       "The hypervolume of the front's own points, and of each family of baselines. "
       "Hypervolume is the share of the plane of peak and step time that plans cover; more is "
       "better.",
       grid(families_grid(*front.measurement)), Fold::kFolded});
  return part;
}

}  // namespace rematch::page
