// What kernels on the host have moved since the program began, by the accesses of each thread as
// kernels/op/device.cuh counts them; and how many were launched.
#pragma once

#include <cstddef>

namespace host_cuda {

inline std::size_t bytes_read = 0;
inline std::size_t bytes_written = 0;

int num_launches();

}  // namespace host_cuda
