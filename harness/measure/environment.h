// Describes this machine, this LibTorch and this build for a report.
#pragma once

#include <ATen/core/Tensor.h>

#include "reports/record/environment.h"

namespace rematch {

// Describes the machine and `device`, on which the steps run. Unknown fields stay absent.
Environment describe_environment(at::Device device);

}  // namespace rematch
