// A front as lines and tables for a terminal or a pull request, and the sentences that its page
// shares with them.
#pragma once

#include <cstddef>
#include <string>

#include "policies/search/front_json.h"
#include "reports/render/grid.h"

namespace rematch {

std::string front_to_text(const FrontRecord& record, TableFormat format, std::size_t width);

// What the front is exact over, or what better plans may exist.
std::string exactness_of(const FrontRecord& record);

// Of a measured front: equal peaks, errors of the calibrated step times, the A/A interval.
std::string measurement_words(const FrontMeasurement& measurement);

// "The knee, point 5: peak 41.6 GiB, step 785 ms". What it keeps stands in the file.
std::string knee_words(const Front& front);

// Empty if nothing was asked.
std::string answer_words(const FrontRecord& record);

}  // namespace rematch
