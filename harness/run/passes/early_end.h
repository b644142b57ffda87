// Turns whatever ends a pass early into a status and a reason of its point.
#pragma once

#include <c10/core/Device.h>

#include <functional>

#include "harness/training/training.h"
#include "reports/record/point.h"

namespace rematch {

// Runs `measure`. If it throws what a point may meet (out of memory, a loss that is not finite, a
// refused op), says so in `record`, with the position of the pass, and returns normally.
void run_to_early_end(const PassPosition& position, c10::Device device, PointRecord& record,
                      const std::function<void()>& measure);

}  // namespace rematch
