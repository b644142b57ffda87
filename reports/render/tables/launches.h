// Launches of a CUDA device by kernel, and the bytes that its allocator took: the
// figures that a dry device knows as well as a GPU.
#pragma once

#include <cstddef>
#include <string>

#include "reports/record/report.h"

namespace rematch {

// Text of two tables: memory by point, and launches of a step by kernel name with a column for each
// point. Nothing where no point has kernels. Newline at the end.
std::string render_launches(const Report& report, std::size_t width);

}  // namespace rematch
