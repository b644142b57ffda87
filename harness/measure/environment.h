// Describes this machine, this LibTorch and this build for a report.
#pragma once

#include <ATen/core/Tensor.h>

#include "reports/record/environment.h"

namespace rematch {

// Fields that this machine does not report stay absent. `device` is the device on which points run.
Environment describe_environment(at::Device device);

}  // namespace rematch
