// Declarations shared by the files of the stand-in for libcudart.
#pragma once

#include <driver_types.h>

#include <cstddef>
#include <cstdint>

#include "harness/dry_cuda/dry_cuda.h"

// CUDA's opaque types, under CUDA's names.
struct CUstream_st {
  int device;
};
struct CUevent_st {
  bool is_timed;
  std::uint64_t recorded_at_ns;  // 0 if the event was never recorded
};

namespace dry_cuda {

// Reads a number from the environment. If the text is not a number, prints an error and exits.
std::size_t setting(const char* name, std::size_t fallback);

// Stores the error for this thread's cudaGetLastError(), and returns it.
cudaError_t report(int code);

int current_device();
void set_current_device(int device);
int device_of(cudaStream_t stream);  // a default stream belongs to the current device

void count_synchronization();
// Fills in thread, times and correlation. Stores the record if recording is on, and passes it to
// the listener.
std::uint32_t add_record(DryCudaRecord record);

}  // namespace dry_cuda
