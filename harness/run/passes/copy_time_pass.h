// The copy time pass: steps of a plan that offloads with a timer on the copies and nothing else.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "harness/training/pass_position.h"
#include "harness/training/training.h"
#include "reports/record/point.h"

namespace rematch {

// Medians over `num_steps` steps from `first_step` on, after warm-up. Not on meta tensors and not
// on the dry device, where copies take no time.
void copy_time_pass(Training& training, at::Device device, std::int64_t first_step, int num_steps,
                    PassPosition& position, HostRecord& host);

}  // namespace rematch
