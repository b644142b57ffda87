// The time pass: steps with nothing attached but a clock, after warm-up.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "harness/run/children/job.h"
#include "harness/training/training.h"
#include "reports/record/point.h"

namespace rematch {

// Steps from 0 on. Fills the point's time: one round of samples, phases, on a GPU what the device
// did meanwhile, elsewhere the time of each op class. Throws LossNotFinite.
void time_pass(Training& training, const Job& job, int num_steps, PassPosition& position,
               PointRecord& record);

// The copy time pass: steps of a plan that offloads with a timer on the copies and nothing else.

// Medians over `num_steps` steps from `first_step` on, after warm-up. Not on meta tensors and not
// on the dry device, where copies take no time.
void copy_time_pass(Training& training, at::Device device, std::int64_t first_step, int num_steps,
                    PassPosition& position, HostRecord& host);

}  // namespace rematch
