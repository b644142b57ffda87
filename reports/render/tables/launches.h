// Kernel launches of a CUDA device, and the bytes that its allocator reserved and allocated. On the
// dry device, these figures are the same as on a GPU.
#pragma once

#include <cstddef>
#include <string>

#include "reports/record/report.h"

namespace rematch {

// Returns two tables as text: memory by point, and launches per step by kernel name, with a column
// for each point. Empty if no point has kernels. Ends with a newline.
std::string render_launches(const Report& report, std::size_t width);

}  // namespace rematch
