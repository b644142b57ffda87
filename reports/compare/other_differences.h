// Facts of two points that repeat exactly and that no metric covers: so that "no difference" is
// said only where there is none. Times, and bytes that other processes move, are no such facts.
#pragma once

#include <string>
#include <vector>

#include "reports/record/compare.h"
#include "reports/record/point.h"

namespace rematch {

// The JSON names of those that differ, "memory.after_forward_bytes", in the order of the record.
// Left out is what follows from a difference that the row's metrics show: of bytes where a peak
// differs, of ops where a count does.
std::vector<std::string> other_differences(const PointRecord& base, const PointRecord& candidate,
                                           const ComparedRow& row);

}  // namespace rematch
