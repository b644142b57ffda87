// A compare record as a table for people: a line for each point that both reports have, what
// explains its differences below it, and the points that could not be compared.
#pragma once

#include <cstddef>
#include <string>

#include "reports/record/compare.h"
#include "reports/render/grid.h"

namespace rematch {

// From this many rows on, rows without any difference are counted instead of shown.
inline constexpr std::size_t kMostEqualRows = 100;

std::string render_compare(const CompareRecord& record, TableFormat format,
                           std::size_t width = 120);

}  // namespace rematch
