// A point's kernel figures from what its steps' activity was attributed to. Pure.
#pragma once

#include "harness/profile/attribution.h"
#include "reports/record/point.h"

namespace rematch {

// `executed` is what the op counter saw in the same steps: where the two disagree, the record says
// that it is not to be used.
KernelRecord kernel_record(const KernelUse& use, const CountsRecord& executed);

// Kernel times of a step, by phase and by class of the op that launched them.
std::array<std::map<OpClass, std::chrono::nanoseconds>, kNumPhases> op_class_times(
    const KernelUse& use, int counted_steps);

}  // namespace rematch
