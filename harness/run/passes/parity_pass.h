// The parity pass: what each step leaves behind, bit by bit, in losses, gradients, parameters and
// generators.
#pragma once

#include <ATen/core/Tensor.h>

#include "harness/run/children/job.h"
#include "harness/training/training.h"
#include "reports/record/point.h"

namespace rematch {

// Steps from 0 on. Fills the point's steps, and says whether every parameter has a gradient.
// Throws LossNotFinite.
void parity_pass(Training& training, Job& job, int num_steps, PassPosition& position,
                 PointRecord& record);

}  // namespace rematch
