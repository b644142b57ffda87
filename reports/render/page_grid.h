// A grid as an HTML table, each row's words in a row below it. On a narrow screen the table scrolls
// sideways under its first column.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "reports/render/grid.h"

namespace rematch {

// `is_alarming`, asked by row: its words stand out.
std::string page_grid(const Grid& grid, const std::function<bool(std::size_t)>& is_alarming);

}  // namespace rematch
