// Describes this machine, this LibTorch and this build for a report.
#pragma once

#include <ATen/core/Tensor.h>

#include "reports/record/environment.h"

namespace rematch {

// Leaves fields absent that this machine does not report. `device` is the device that the points
// run on.
Environment describe_environment(at::Device device);

}  // namespace rematch
