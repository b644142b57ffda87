// A front as tables: its points, the baselines, what was measured, and who covers how much.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "policies/search/front_json.h"
#include "reports/render/grid.h"

namespace rematch {

// "layers 0-5: keep ...", cut where it is long; the front's file has all of it.
std::string short_saves(const FrontPoint& point);

// Those words in the line below a row.
enum class PlanWords : std::uint8_t { kLeftOut, kShown };

std::vector<std::size_t> every_point(const Front& front);

// `shown`: indices of points.
Grid points_grid(const FrontRecord& record, const std::vector<std::size_t>& shown, PlanWords words);
Grid baselines_grid(const FrontRecord& record);

// Points and baselines that were run: predicted against measured.
Grid measured_grid(const Front& front);
std::vector<const FrontPoint*> points_that_ran(const Front& front);  // in that grid's order

// Hypervolume of the front's own points beside that of each family of baselines.
Grid families_grid(const FrontMeasurement& measurement);

}  // namespace rematch
