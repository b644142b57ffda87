// The time pass: steps with nothing attached but a clock, after warm-up.
#pragma once

#include <ATen/core/Tensor.h>

#include "harness/run/children/job.h"
#include "harness/training/pass_position.h"
#include "harness/training/training.h"
#include "reports/record/point.h"

namespace rematch {

// Steps from 0 on. Fills the point's time: one round of samples, phases, on a GPU what the device
// did meanwhile, elsewhere the time of each op class. Throws LossNotFinite.
void time_pass(Training& training, const Job& job, int num_steps, PassPosition& position,
               PointRecord& record);

}  // namespace rematch
