// Reports as comma-separated values: one line a point, units in the column names, RFC 4180.
#pragma once

#include <string>
#include <vector>

#include "reports/render/page.h"

namespace rematch {

// Header first. Not measured is empty. Text that a spreadsheet would take for a formula gets an
// apostrophe in front.
std::string render_csv(const std::vector<NamedReport>& reports);

}  // namespace rematch
