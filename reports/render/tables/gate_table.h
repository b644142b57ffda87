// A gate record as a table: a line for each check, with its reason below.
#pragma once

#include <cstddef>
#include <string>

#include "reports/record/gate.h"
#include "reports/render/tables/grid.h"

namespace rematch {

// From this number of points on, points that pass are counted instead of shown.
inline constexpr std::size_t kMaxPassingPoints = 100;

std::string render_gate(const GateRecord& record, TableFormat format, std::size_t width = 120);

}  // namespace rematch
