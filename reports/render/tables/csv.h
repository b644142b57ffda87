// Reports, compare records and searched fronts as comma-separated values (RFC 4180), with units in
// the column names. A value that was not measured is empty. Text that a spreadsheet would take for
// a formula gets a leading apostrophe.
#pragma once

#include <string>
#include <vector>

#include "reports/render/pages/page.h"

namespace rematch {

// Returns a header and a line for each point. Every dimension of any model has its own column.
std::string render_csv(const std::vector<NamedReport>& reports);

// Returns a header and a line for each row and metric. A point that could not be compared has a
// line without a metric, whose verdict is missing, extra or failed.
std::string render_csv(const std::vector<NamedCompare>& compares);

// Returns a header and a line for each point of a front and each baseline.
std::string render_csv(const std::vector<NamedFront>& fronts);

}  // namespace rematch
