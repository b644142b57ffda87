// The comparison of a report's policies as a table: what each executed, its peak, its price and a
// verdict in words. Every point has a row, failed ones too.
#pragma once

#include <string>

#include "reports/record/report.h"
#include "reports/render/grid.h"

namespace rematch {

// ASCII, newline at the end. Text fits `width` columns unless a single cell does not.
std::string render_table(const Report& report, TableFormat format, std::size_t width = 120);

}  // namespace rematch
