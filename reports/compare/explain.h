// Which part of a step a difference comes from: shares of a difference in time, bytes or ops.
#pragma once

#include <optional>

#include "reports/record/compare.h"

namespace rematch {

// By the finest parts that both points recorded: time by phase and kernel class, else op class,
// else by phase alone; bytes by holder at the peak; ops by phase and op class; kernels by phase and
// class. Absent where there is no difference or none of these.
std::optional<ExplanationRecord> explain(const MetricRecord& metric, const PointRecord& base,
                                         const PointRecord& candidate);

}  // namespace rematch
