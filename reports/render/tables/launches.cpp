#include "reports/render/tables/launches.h"

#include <algorithm>
#include <map>
#include <vector>

#include "policies/base/format.h"
#include "reports/render/tables/grid.h"

namespace rematch {
namespace {

using table::Alignment;
using table::bytes_cell;
using table::format_grid;
using table::format_line;
using table::Grid;
using table::kNotMeasured;
using table::Row;

// Returns the policies' names, with schedules if schedules differ.
std::vector<std::string> names_of(const std::vector<const PointRecord*>& points) {
  const bool has_several = std::any_of(points.begin(), points.end(), [&](const PointRecord* point) {
    return point->identity.schedule != points.front()->identity.schedule;
  });
  std::vector<std::string> names;
  for (const PointRecord* point : points) {
    const std::string schedule(to_string(point->identity.schedule));
    names.push_back(has_several ? point->policy + ", " + schedule : point->policy);
  }
  return names;
}

Grid memory_grid(const std::vector<const PointRecord*>& points,
                 const std::vector<std::string>& names) {
  Grid grid{{{"peak of", Alignment::kLeft},
             {"requested"},
             {"allocated"},
             {"reserved"},
             {"workspaces"},
             {"predicted", Alignment::kRight, 1}}};
  for (std::size_t index = 0; index < points.size(); ++index) {
    const MemoryRecord memory = points[index]->memory.value_or(MemoryRecord{});
    grid.rows.push_back(
        {{names[index], bytes_cell(memory.peak_requested), bytes_cell(memory.peak_allocated),
          bytes_cell(memory.peak_reserved), bytes_cell(memory.workspace),
          bytes_cell(memory.predicted_peak_requested)},
         ""});
  }
  return grid;
}

// Maps the name of a kernel to its launches in each point.
using Launches = std::map<std::string, std::vector<std::int64_t>>;

Launches launches_of(const std::vector<const PointRecord*>& points) {
  Launches launches;
  for (std::size_t index = 0; index < points.size(); ++index) {
    if (!points[index]->kernels) continue;
    for (const auto& phase : points[index]->kernels->launches) {
      for (const auto& [name, count] : phase) {
        std::vector<std::int64_t>& counts = launches[name];
        counts.resize(points.size(), 0);
        counts[index] += count;
      }
    }
  }
  return launches;
}

// Sorts kernels by launches, most first.
Grid launches_grid(const std::vector<const PointRecord*>& points,
                   const std::vector<std::string>& names) {
  Grid grid{{{"kernel", Alignment::kLeft}}};
  for (const std::string& name : names) grid.columns.push_back({name});
  const Launches launches = launches_of(points);
  std::vector<Launches::const_iterator> sorted;
  for (auto entry = launches.begin(); entry != launches.end(); ++entry) sorted.push_back(entry);
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return *std::max_element(a->second.begin(), a->second.end()) >
           *std::max_element(b->second.begin(), b->second.end());
  });
  for (const auto& entry : sorted) {
    Row row{{entry->first}, ""};
    for (const std::int64_t count : entry->second) row.cells.push_back(std::to_string(count));
    grid.rows.push_back(std::move(row));
  }
  return grid;
}

}  // namespace

std::string render_launches(const Report& report, std::size_t width) {
  std::vector<const PointRecord*> points;
  int counted_steps = 0;
  for (const PointRecord& point : report.points) {
    if (!point.kernels && !point.memory) continue;
    points.push_back(&point);
    if (point.kernels) counted_steps = point.kernels->counted_steps;
  }
  if (counted_steps == 0) return "";
  const std::vector<std::string> names = names_of(points);
  std::string text =
      "\n" + format_grid(memory_grid(points, names), TableFormat::kText, width) + "\n";
  text += format_line("Kernels launched in " + std::to_string(counted_steps) + " steps:",
                      TableFormat::kText, width);
  return text + format_grid(launches_grid(points, names), TableFormat::kText, width);
}

}  // namespace rematch
