// Can kernels be counted here?
#pragma once

#include <string>

namespace rematch {

// "ok", or why not: no CUDA in this build, no CUPTI, one of another version, a driver that refuses,
// another tool that records. Starts a session to find out, and ends it.
std::string kernel_counting_state();

}  // namespace rematch
