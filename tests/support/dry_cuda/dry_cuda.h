// A CUDA device on which no kernel runs: what a program asks of it is recorded by name. C interface
// of the stand-in for libcudart. Link it, or find it with dlsym() in programs that also run on a
// GPU.
//
// Settings, read from the environment when the library is first used:
//   DRY_CUDA_CARD          h100 (unless given), h200, l40s or a100
//   DRY_CUDA_DEVICES       how many devices there are: 1
//   DRY_CUDA_MEMORY_BYTES  of each device: the card's
//   DRY_CUDA_COPY_BYTES    a larger copy from or to a device moves nothing, and reads zeros: 1 MiB
//   DRY_CUDA_FAILURES      "FUNCTION@CALL=CODE,...": planted as by dry_cuda_plant_failure()
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum DryCudaKind { DRY_CUDA_KERNEL, DRY_CUDA_COPY, DRY_CUDA_SET };

struct DryCudaRecord {
  const char* name;  // a kernel's mangled symbol; "HtoD", "DtoH", "DtoD" or "HtoH" of a copy
  const char* call;  // of the runtime or driver: "__cudaLaunchKernel", "cudaMemcpyAsync"
  enum DryCudaKind kind;
  int device;
  uint32_t grid[3];
  uint32_t block[3];
  uint64_t shared_bytes;  // dynamic
  uint64_t bytes;         // of a copy or a set
  uint64_t stream;        // 0: the default one
  uint64_t thread;        // that launched, counted from 0 in the order of first launches
  uint64_t start_ns;      // of a clock on which each record takes 1000 ns; never 0
  uint64_t end_ns;
  uint32_t correlation;  // counts all records, kept or not
};

// Records are kept from the first call of dry_cuda_reset() on; each call forgets those before it.
void dry_cuda_reset(void);
size_t dry_cuda_size(void);
const struct DryCudaRecord* dry_cuda_record(size_t index);  // valid until the next reset

// How often the host has waited: cudaDeviceSynchronize and its kin.
uint64_t dry_cuda_synchronizations(void);
// The time at which all that was recorded so far has ended.
uint64_t dry_cuda_clock_ns(void);

// Device memory that is taken, a context's included, as the driver rounds it.
uint64_t dry_cuda_allocated_bytes(int device);
uint64_t dry_cuda_peak_bytes(int device);

// The call of `function` after `calls_before` others answers `code` instead of doing anything, and
// those after it are as they were; e.g. ("cudaMalloc", 0, 2) or ("cublasCreate_v2", 0, 3).
//
// For three names that are no functions, the record that CUPTI has of a kernel goes wrong. Kernels
// count from the first that is recorded on, and any code but 0 does:
//   cupti.lost_record        there is none
//   cupti.withheld_record    it is handed out by a forced flush alone
//   cupti.unfinished_record  as a withheld one, and without an end
void dry_cuda_plant_failure(const char* function, unsigned calls_before, int code);

// For the other stand-ins. A library's kernel, launched through the driver; who hears of records;
// the planted code or 0; says once for each function that nothing is made up for it, and gives
// `code` back.
uint32_t dry_cuda_launch(const char* name, const uint32_t grid[3], const uint32_t block[3],
                         uint64_t shared_bytes, void* stream);
typedef void (*DryCudaListener)(const struct DryCudaRecord*);
void dry_cuda_listen(DryCudaListener listener);
int dry_cuda_planted(const char* function);
int dry_cuda_missing(const char* function, int code);

#ifdef __cplusplus
}
#endif
