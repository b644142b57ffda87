// The report's record of the host memory of a step.
#pragma once

#include <optional>

#include "harness/training/training.h"
#include "reports/record/point.h"

namespace rematch {

// Host memory since Training::restart_host_counts(). Absent: the plan offloads nothing.
std::optional<HostRecord> host_record(const Training& training);

}  // namespace rematch
