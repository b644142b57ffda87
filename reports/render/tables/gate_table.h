// A gate record for people: a line for each check, its reason below.
#pragma once

#include <cstddef>
#include <string>

#include "reports/record/gate.h"
#include "reports/render/tables/grid.h"

namespace rematch {

// From this many points on, those that pass are counted instead of shown.
inline constexpr std::size_t kMostPassingPoints = 100;

std::string render_gate(const GateRecord& record, TableFormat format, std::size_t width = 120);

}  // namespace rematch
