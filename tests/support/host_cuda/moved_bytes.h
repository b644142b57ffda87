// Bytes that kernels on the host have moved since the program began, and the number of launches.
// kernels/op/device.cuh counts the bytes of each thread's accesses.
#pragma once

#include <cstddef>

namespace host_cuda {

inline std::size_t bytes_read = 0;
inline std::size_t bytes_written = 0;

int num_launches();

}  // namespace host_cuda
