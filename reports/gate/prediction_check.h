// Did the point execute what its plan says? A point that ended ok did; what says otherwise was
// measured by a broken build, or edited. Pure.
#pragma once

#include <optional>

#include "reports/record/gate.h"
#include "reports/record/point.h"

namespace rematch {

// Nothing: it did, or there is nothing to hold it to.
std::optional<CheckRecord> check_prediction(const PointRecord& point);

}  // namespace rematch
