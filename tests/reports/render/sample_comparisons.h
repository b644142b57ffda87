// Synthetic comparisons for the tests of charts and pages.
#pragma once

#include <cstdint>

#include "reports/record/report.h"

namespace rematch::testing {

// Contains everything that a page can show: both schedules, a failure, different bits, a loss that
// is not finite, times by class, wrong predictions, long names, and names that contain markup.
Report representative_report();

// Makes up to 40 points with figures drawn from the seed. Some figures are equal, huge or missing.
Report random_report(std::uint32_t seed);

// Makes one comparison of `num_points` complete points.
Report large_report(int points);

}  // namespace rematch::testing
