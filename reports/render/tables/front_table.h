// A searched front as lines and tables for a terminal or a pull request. Its sentences are in
// front_words.h.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "policies/search/front/front_json.h"
#include "reports/render/tables/front_words.h"
#include "reports/render/tables/grid.h"

namespace rematch {

std::string front_to_text(const FrontRecord& record, TableFormat format, std::size_t width,
                          const FrontFiles& files);

// Its points, by their indices, and the baselines: peak, step time, and both compared with none.
// Words of plans are those of short_saves(), in the line below a row.
table::Grid points_grid(const FrontRecord& record, const std::vector<std::size_t>& shown);
table::Grid baselines_grid(const FrontRecord& record);
std::vector<std::size_t> every_point(const Front& front);
// One row of these tables; `details` stand below it.
table::Row point_row(const FrontRecord& record, const std::string& name, const FrontPoint& point,
                     std::vector<std::string> details);

// The plan of a front that a person can type, beside the front's own answer.

// "whole_region: torch.utils.checkpoint's, which every PyTorch trainer has".
std::string schedule_words(Schedule schedule);

// The row beside the points of a front, with its distance to it: "simple". The record has one.
table::Row simple_row(const FrontRecord& record);

// Setting, answer and simple plan alone: what search --simple prints.
std::string simple_to_text(const FrontRecord& record, std::size_t width, const FrontFiles& files);

// The measurements of a searched front, beside the predictions: as tables and sentences.

// Points and baselines that were run: predicted against measured.
table::Grid measured_grid(const Front& front);

// Hypervolume of the front's own points beside that of each family of baselines.
table::Grid families_grid(const FrontMeasurement& measurement);

// A warning that calibrated times are far from the profile's, and what to do; else empty.
std::string calibration_warning(const FrontRecord& record);

// Describes a measured front: equal peaks, errors of the calibrated step times, the A/A interval.
std::string measurement_words(const FrontMeasurement& measurement);

}  // namespace rematch
