// The counting pass of a GPU: which kernels the steps really ran, from the device's own records.
// Apart from the passes that time and weigh, which it would disturb.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "harness/training/training.h"
#include "reports/record/point.h"

namespace rematch {

// Fills the point's kernels and the times of its op classes, or says why there are none: activity
// that cannot be recorded at all, or does not add up, is no fault of what else was measured. Counts
// at least two steps, so that one is held against the other.
void kernel_pass(Training& training, at::Device device, std::int64_t first_step, int num_steps,
                 PointRecord& record);

// A step of which PyTorch's CUDA allocator writes down every event, each named after the op that
// asked. Apart from the passes that measure.

// Writes the snapshot to `file`; throws FileError if it cannot.
void snapshot_pass(Training& training, std::int64_t step, const std::string& file,
                   PassPosition& position);

}  // namespace rematch
