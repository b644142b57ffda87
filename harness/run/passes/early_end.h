// Turns an exception that ends a pass early into the status and reason of the point.
#pragma once

#include <c10/core/Device.h>

#include <functional>

#include "harness/training/training.h"
#include "reports/record/point.h"

namespace rematch {

// Runs `measure`. If `measure` throws, writes the failure and the step and phase of the pass to
// `record`, and returns normally.
void run_to_early_end(const PassPosition& position, c10::Device device, PointRecord& record,
                      const std::function<void()>& measure);

}  // namespace rematch
