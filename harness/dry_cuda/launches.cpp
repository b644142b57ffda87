// Registers kernels when nvcc's start-up code requests it. Checks and records launches.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "harness/dry_cuda/capture.h"
#include "harness/dry_cuda/card.h"
#include "harness/dry_cuda/runtime.h"

namespace dry_cuda {
namespace {

constexpr std::size_t kKernelsOfLibTorch = 60000;
constexpr std::uint64_t kMaxThreads = 1024;
constexpr unsigned kMaxDepth = 64;
constexpr unsigned kMaxBlocksAcross = 65535;  // limit of a grid's second and third dimension

struct Kernel {
  const char* symbol;  // points into the program's data, which is never freed
  std::size_t shared_bytes = kSharedBytesUnasked;
};

struct Kernels {
  std::mutex mutex;
  std::unordered_map<const void*, Kernel> by_function;
  Kernels() { by_function.reserve(kKernelsOfLibTorch); }
};

Kernels& kernels() {
  static Kernels* const made = new Kernels;
  return *made;
}

bool is_valid(dim3 grid, dim3 block) {
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  return threads > 0 && threads <= kMaxThreads && block.z <= kMaxDepth && grid.x > 0 &&
         grid.x <= INT32_MAX && grid.y > 0 && grid.y <= kMaxBlocksAcross && grid.z > 0 &&
         grid.z <= kMaxBlocksAcross;
}

cudaError_t launch(const char* call, const void* function, dim3 grid, dim3 block,
                   std::size_t shared_bytes, cudaStream_t stream) {
  if (const int code = dry_cuda_planted("cudaLaunchKernel")) return report(code);
  DryCudaRecord record{};
  {
    const std::lock_guard lock(kernels().mutex);
    const auto found = kernels().by_function.find(function);
    if (found == kernels().by_function.end()) return report(cudaErrorInvalidDeviceFunction);
    if (shared_bytes > found->second.shared_bytes) return report(cudaErrorInvalidValue);
    record.name = found->second.symbol;
  }
  if (!is_valid(grid, block)) return report(cudaErrorInvalidConfiguration);
  if (device_of(stream) != current_device()) return report(cudaErrorInvalidResourceHandle);
  record.call = call;
  record.kind = DRY_CUDA_KERNEL;
  record.device = current_device();
  record.grid[0] = grid.x;
  record.grid[1] = grid.y;
  record.grid[2] = grid.z;
  record.block[0] = block.x;
  record.block[1] = block.y;
  record.block[2] = block.z;
  record.shared_bytes = shared_bytes;
  record.stream = reinterpret_cast<std::uint64_t>(stream);
  return submit(record);
}

struct Configuration {
  dim3 grid, block;
  std::size_t shared_bytes;
  cudaStream_t stream;
};

// Launch configurations that kernel<<<...>>> has pushed and the launch has not popped yet.
thread_local std::vector<Configuration> configurations;

}  // namespace
}  // namespace dry_cuda

extern "C" {

using namespace dry_cuda;

void** __cudaRegisterFatBinary(void*) {
  static void* only = nullptr;
  return &only;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}

void __cudaRegisterFunction(void**, const char* function, char*, const char* symbol, int, uint3*,
                            uint3*, dim3*, dim3*, int*) {
  const std::lock_guard lock(kernels().mutex);
  kernels().by_function.try_emplace(function, Kernel{symbol});
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                     cudaStream_t stream) {
  configurations.push_back({grid, block, shared_bytes, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes,
                                       void* stream) {
  const Configuration top = configurations.back();
  configurations.pop_back();
  *grid = top.grid;
  *block = top.block;
  *shared_bytes = top.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = top.stream;
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void**,
                               size_t shared_bytes, cudaStream_t stream) {
  return launch("__cudaLaunchKernel", kernel, grid, block, shared_bytes, stream);
}

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void**,
                             size_t shared_bytes, cudaStream_t stream) {
  return launch("cudaLaunchKernel", function, grid, block, shared_bytes, stream);
}

cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block, void**,
                                        size_t shared_bytes, cudaStream_t stream) {
  return launch("cudaLaunchCooperativeKernel", function, grid, block, shared_bytes, stream);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* how, const void* function, void**) {
  return launch("cudaLaunchKernelExC", function, how->gridDim, how->blockDim, how->dynamicSmemBytes,
                how->stream);
}

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute which, int value) {
  const std::lock_guard lock(kernels().mutex);
  const auto found = kernels().by_function.find(function);
  if (found == kernels().by_function.end()) return report(cudaErrorInvalidDeviceFunction);
  if (which != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (value < 0 || static_cast<std::size_t>(value) > card().shared_bytes_of_block) {
    return report(cudaErrorInvalidValue);
  }
  found->second.shared_bytes = std::max<std::size_t>(value, kSharedBytesUnasked);
  return cudaSuccess;
}

// Register counts and occupancy are guesses, because the stand-in does not read the device code.
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  constexpr int kRegisters = 32;
  *attributes = {};
  attributes->maxThreadsPerBlock = kMaxThreads;
  attributes->numRegs = kRegisters;
  attributes->ptxVersion = attributes->binaryVersion = card().major * 10 + card().minor;
  attributes->maxDynamicSharedSizeBytes = static_cast<int>(card().shared_bytes_of_block);
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*,
                                                                   int block_size, size_t,
                                                                   unsigned) {
  const int fitting = card().threads_of_multiprocessor / std::max(block_size, 1);
  *blocks = std::clamp(fitting, 1, card().blocks_of_multiprocessor);
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function,
                                                          int block_size, size_t shared_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size,
                                                                shared_bytes, 0);
}

}  // extern "C"
