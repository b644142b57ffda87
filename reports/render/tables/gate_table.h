// A gate record as a table: a row for each check, with its reason below.
#pragma once

#include <cstddef>
#include <string>

#include "reports/record/gate.h"
#include "reports/render/tables/grid.h"

namespace rematch {

// If there are at least this many points, points that pass are only counted.
inline constexpr std::size_t kMaxPassingPoints = 100;

std::string render_gate(const GateRecord& record, TableFormat format, std::size_t width = 120);

}  // namespace rematch
