// Compares the ops that a point executed with the ops that its plan predicts. Tables, pages and the
// gate share this comparison.
#pragma once

#include <optional>
#include <string>

#include "reports/record/point.h"

namespace rematch {

// Returns text such as "executed 9 matmul in recompute; the plan predicts 8", or "" if every count
// equals its prediction. Absent if the point has no counts to compare.
std::optional<std::string> unplanned_counts(const PointRecord& point);

}  // namespace rematch
