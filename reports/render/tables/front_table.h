// A searched front as lines and tables for a terminal or a pull request, and the sentences and
// tables that its page shares with them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policies/search/front_json.h"
#include "reports/render/tables/grid.h"

namespace rematch {

// `file` is where the front is stored, for the commands that take its points; empty: nowhere.
std::string front_to_text(const FrontRecord& record, TableFormat format, std::size_t width,
                          const std::string& file);

// Its points, by their indices, and the baselines: peak, step time, and both compared with none.
// Words of plans are those of short_saves(), in the line below a row.
table::Grid points_grid(const FrontRecord& record, const std::vector<std::size_t>& shown);
table::Grid baselines_grid(const FrontRecord& record);
std::vector<std::size_t> every_point(const Front& front);
// One row of these tables; `details` stand below it.
table::Row point_row(const FrontRecord& record, const std::string& name, const FrontPoint& point,
                     std::vector<std::string> details);
// The point that a reader is to look at first: of what was asked, or the fastest within the
// device's memory.
std::optional<std::size_t> lead_point(const FrontRecord& record);

// Points and baselines that were run: predicted against measured.
table::Grid measured_grid(const Front& front);

// Hypervolume of the front's own points beside that of each family of baselines.
table::Grid families_grid(const FrontMeasurement& measurement);

// "layers 0-5: keep ...", cut where it is long; the front's file has all of it.
std::string short_saves(const FrontPoint& point);

// "llama3_8b, bfloat16, batch 1, 8192 tokens, AdamW, on h100 (74.5 GiB)", and which rank of how
// many.
std::string setting_words(const FrontRecord& record);

// The fastest point within what was asked for, or within the device's memory: its number, figures
// and what it keeps; or that there is none. Empty if no limit is known.
std::string lead_words(const FrontRecord& record);

// "The knee, point 5: peak 41.6 GiB, step 785 ms". What it keeps is in the file.
std::string knee_words(const Front& front);

// Where calibrated times are far from the profile's, and what to do; else empty.
std::string calibration_warning(const FrontRecord& record);

// "6 of 56 plans worth having".
std::string plans_words(const Front& front);

// What the front is exact over, or what better plans may exist.
std::string exactness_words(const FrontRecord& record);

std::string hypervolume_words(const Front& front);

// Describes a measured front: equal peaks, errors of the calibrated step times, the A/A interval.
std::string measurement_words(const FrontMeasurement& measurement);

// The index of the fastest point whose peak is at most `limit`; nothing if all are larger.
std::optional<std::size_t> fastest_within(const Front& front, Bytes limit);

}  // namespace rematch
