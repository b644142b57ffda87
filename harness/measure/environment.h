// Describes this machine, this LibTorch and this build for a report.
#pragma once

#include <ATen/core/Tensor.h>

#include "reports/record/environment.h"

namespace rematch {

// What is not known on this machine stays absent. `device` is what the points run on.
Environment describe_environment(at::Device device);

}  // namespace rematch
