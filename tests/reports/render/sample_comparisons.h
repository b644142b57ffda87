// Synthetic comparisons for the tests of charts and pages.
#pragma once

#include <cstdint>

#include "reports/record/report.h"

namespace rematch::testing {

// Contains everything that a page can show: both schedules, a failure, different bits, a loss that
// is not finite, class times, wrong predictions, long names, and names that contain markup.
Report representative_report();

// Makes arbitrary figures from the seed for up to 40 points: equal, huge and missing figures.
Report random_report(std::uint32_t seed);

// One comparison with this many points, each with what a measured report contains.
Report large_report(int points);

}  // namespace rematch::testing
