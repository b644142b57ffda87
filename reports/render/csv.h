// Reports and compare records as comma-separated values: one line a point, or a row and metric;
// units in the column names, RFC 4180.
#pragma once

#include <string>
#include <vector>

#include "reports/render/page.h"

namespace rematch {

// Header first. Not measured is empty. Text that a spreadsheet would take for a formula gets an
// apostrophe in front.
std::string render_csv(const std::vector<NamedReport>& reports);

// A line a row and metric; a point that could not be compared has a line without a metric, whose
// verdict is missing, extra or failed.
std::string render_csv(const std::vector<NamedCompare>& compares);

}  // namespace rematch
