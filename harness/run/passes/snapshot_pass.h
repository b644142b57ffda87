// A step of which PyTorch's CUDA allocator writes down every event, each named after the op that
// asked. Apart from the passes that measure.
#pragma once

#include <cstdint>
#include <string>

#include "harness/training/pass_position.h"
#include "harness/training/training.h"

namespace rematch {

// Writes the snapshot to `file`; throws FileError if it cannot.
void snapshot_pass(Training& training, std::int64_t step, const std::string& file,
                   PassPosition& position);

}  // namespace rematch
