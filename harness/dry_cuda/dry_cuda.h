// C interface of the stand-in for libcudart: a CUDA device that runs no kernels, and records the
// name of each operation. A program that also runs on a real GPU must look up the functions below
// with dlsym(), because CUDA lacks them.
//
// Settings, read from the environment when the library is first used:
//   DRY_CUDA_CARD          h100 (default), h200, l40s or a100
//   DRY_CUDA_DEVICES       number of devices; default 1
//   DRY_CUDA_MEMORY_BYTES  memory of each device; default: the memory of the card
//   DRY_CUDA_COPY_BYTES    largest copy whose content is stored; default 1 MiB. Later reads of the
//                          content of larger copies return zeros
//   DRY_CUDA_FAILURES      "FUNCTION@CALL=CODE,...", as in dry_cuda_plant_failure()
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum DryCudaKind { DRY_CUDA_KERNEL, DRY_CUDA_COPY, DRY_CUDA_SET };

struct DryCudaRecord {
  const char* name;  // a kernel's mangled symbol, or a copy's "HtoD", "DtoH", "DtoD" or "HtoH"
  const char*
      call;  // runtime or driver function, such as "__cudaLaunchKernel" or "cudaMemcpyAsync"
  enum DryCudaKind kind;
  int device;
  uint32_t grid[3];
  uint32_t block[3];
  uint64_t shared_bytes;  // dynamic
  uint64_t bytes;         // bytes that a copy or memset wrote
  uint64_t stream;        // handle; 0 is the default stream
  uint64_t thread;    // index of the launching thread; threads are numbered by their first launch
  uint64_t start_ns;  // simulated time, never 0; each operation takes 1000 ns
  uint64_t end_ns;
  uint32_t correlation;  // position among all operations, recorded or not
};

// Discards all records. The first call also starts the recording.
void dry_cuda_reset(void);
size_t dry_cuda_size(void);
const struct DryCudaRecord* dry_cuda_record(
    size_t index);  // the pointer is valid until the next reset

// Returns how often the host has waited for the device, as cudaDeviceSynchronize() does.
uint64_t dry_cuda_synchronizations(void);
// Returns the simulated time at which all recorded operations have ended.
uint64_t dry_cuda_clock_ns(void);

// Returns the name of the first call that ended the last stream capture, such as "cudaMalloc": CUDA
// prohibits the call during a capture. Returns null if there was none.
const char* dry_cuda_refused_call(void);

// Device memory in use. Includes the CUDA contexts, and is rounded up as the driver does.
uint64_t dry_cuda_allocated_bytes(int device);
uint64_t dry_cuda_peak_bytes(int device);

// After `calls_before` calls of `function`, makes the next call return `code` without any effect.
// Later calls work as usual. Examples: ("cudaMalloc", 0, 2) or ("cublasCreate_v2", 0, 3).
//
// Three special names damage CUPTI's record of a kernel. `calls_before` then counts recorded
// kernels, and `code` may be any number except 0:
//   cupti.lost_record        the record does not exist
//   cupti.withheld_record    only a forced flush delivers the record
//   cupti.unfinished_record  the record is withheld, and has no end time
void dry_cuda_plant_failure(const char* function, unsigned calls_before, int code);

// Used by the other stand-ins. dry_cuda_launch() records a kernel of a library. dry_cuda_listen()
// sets the function that receives records. dry_cuda_planted() returns the error code planted for
// this call, or 0. dry_cuda_missing() returns `code`. The first call for a function also prints on
// stderr that the function has no stand-in.
void dry_cuda_launch(const char* name, const uint32_t grid[3], const uint32_t block[3],
                     uint64_t shared_bytes, void* stream);
typedef void (*DryCudaListener)(const struct DryCudaRecord*);
void dry_cuda_listen(DryCudaListener listener);
int dry_cuda_planted(const char* function);
int dry_cuda_missing(const char* function, int code);

#ifdef __cplusplus
}
#endif
