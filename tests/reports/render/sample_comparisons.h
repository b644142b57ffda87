// Made-up comparisons for the tests of charts and pages.
#pragma once

#include <cstdint>

#include "reports/record/report.h"

namespace rematch::testing {

// Everything that a page can show: both schedules, a failure, another bit, a loss that is not
// finite, class times, predictions that miss, and names that are long or mean something in markup.
Report telling_report();

// Any figures at all, by seed: equal ones, huge ones, missing ones, up to 40 points.
Report random_report(std::uint32_t seed);

// As many points of one comparison, with what a measured report has of each.
Report large_report(int points);

}  // namespace rematch::testing
