// What the files of the stand-in for libcudart share.
#pragma once

#include <driver_types.h>

#include <cstddef>
#include <cstdint>

#include "tests/support/dry_cuda/dry_cuda.h"

// CUDA's opaque types, by their names.
struct CUstream_st {
  int device;
};
struct CUevent_st {
  bool is_timed;
  std::uint64_t recorded_at_ns;  // 0: never
};

namespace dry_cuda {

// A number in the environment. Ends the program with a line on stderr if it is none.
std::size_t setting(const char* name, std::size_t fallback);

// Remembers the error for cudaGetLastError(), per thread, and gives it back.
cudaError_t report(int code);

int current_device();
void set_current_device(int device);
int device_of(cudaStream_t stream);  // the default streams are the current device's

void count_synchronization();
// Adds thread, times and correlation, keeps the record if asked to and tells the listener.
std::uint32_t add_record(DryCudaRecord record);

}  // namespace dry_cuda
