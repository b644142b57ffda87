// Reports, compare records and searched fronts as comma-separated values (RFC 4180), with units in
// the column names. Values that were not measured are empty. An apostrophe precedes text that a
// spreadsheet would read as a formula.
#pragma once

#include <string>
#include <vector>

#include "reports/render/pages/page.h"

namespace rematch {

// Returns a header and a line for each point. All dimensions of all models have columns.
std::string render_csv(const std::vector<NamedReport>& reports);

// Returns a header and a line for each row and metric. A point that could not be compared has a
// line without a metric, whose verdict is missing, extra or failed.
std::string render_csv(const std::vector<NamedCompare>& compares);

// Returns a header and a line for each point of a front and each baseline.
std::string render_csv(const std::vector<NamedFront>& fronts);

}  // namespace rematch
