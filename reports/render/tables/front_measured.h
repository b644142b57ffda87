// The measurements of a searched front, beside the predictions: as tables and sentences.
#pragma once

#include <string>

#include "policies/search/front/front_json.h"
#include "reports/render/tables/grid.h"

namespace rematch {

// Points and baselines that were run: predicted against measured.
table::Grid measured_grid(const Front& front);

// Hypervolume of the front's own points beside that of each family of baselines.
table::Grid families_grid(const FrontMeasurement& measurement);

// A warning that calibrated times are far from the profile's, and what to do; else empty.
std::string calibration_warning(const FrontRecord& record);

// Describes a measured front: equal peaks, errors of the calibrated step times, the A/A interval.
std::string measurement_words(const FrontMeasurement& measurement);

}  // namespace rematch
