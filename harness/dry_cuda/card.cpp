#include "harness/dry_cuda/card.h"

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "harness/dry_cuda/runtime.h"

namespace dry_cuda {
namespace {

constexpr std::size_t kKib = 1024;
constexpr std::size_t kMib = kKib * kKib;
constexpr int kThreadsOfBlock = 1024;
constexpr int kBlockDepth = 64;
constexpr int kGridWidth = 2147483647;
constexpr int kGridHeight = 65535;
constexpr int kWarp = 32;
constexpr int kRegisters = 65536;

// Limits by compute capability, from the table of technical specifications in the CUDA C++
// Programming Guide.
constexpr std::array<Card, 4> kCards = {
    {{"h100", 9, 0, 132, 81000 * kMib, 227 * kKib, 228 * kKib, 2048, 32, 50 * kMib, 5120},
     {"h200", 9, 0, 132, 143160 * kMib, 227 * kKib, 228 * kKib, 2048, 32, 50 * kMib, 6144},
     {"l40s", 8, 9, 142, 45460 * kMib, 99 * kKib, 100 * kKib, 1536, 24, 96 * kMib, 384},
     {"a100", 8, 0, 108, 81150 * kMib, 163 * kKib, 164 * kKib, 2048, 32, 40 * kMib, 5120}}};

const Card& card_of_environment() {
  const char* asked = std::getenv("DRY_CUDA_CARD");
  if (asked == nullptr) return kCards.front();
  for (const Card& known : kCards) {
    if (known.name == asked) return known;
  }
  std::fprintf(stderr, "dry_cuda: DRY_CUDA_CARD=%s is none of h100, h200, l40s, a100\n", asked);
  std::exit(1);
}

}  // namespace

const Card& card() {
  static const Card& chosen = card_of_environment();
  return chosen;
}

int num_devices() {
  static const int number = static_cast<int>(setting("DRY_CUDA_DEVICES", 1));
  return number;
}

std::size_t memory_bytes() {
  static const std::size_t bytes = setting("DRY_CUDA_MEMORY_BYTES", card().memory_bytes);
  return bytes;
}

namespace {

int attribute(cudaDeviceAttr which) {
  switch (which) {
    case cudaDevAttrMaxThreadsPerBlock:
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY:
      return kThreadsOfBlock;
    case cudaDevAttrMaxBlockDimZ:
      return kBlockDepth;
    case cudaDevAttrMaxGridDimX:
      return kGridWidth;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ:
      return kGridHeight;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      return kSharedBytesUnasked;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return static_cast<int>(card().shared_bytes_of_block);
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      return static_cast<int>(card().shared_bytes_of_multiprocessor);
    case cudaDevAttrReservedSharedMemoryPerBlock:
      return static_cast<int>(kKib);
    case cudaDevAttrWarpSize:
      return kWarp;
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor:
      return kRegisters;
    case cudaDevAttrMultiProcessorCount:
      return card().multiprocessors;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      return card().threads_of_multiprocessor;
    case cudaDevAttrMaxBlocksPerMultiprocessor:
      return card().blocks_of_multiprocessor;
    case cudaDevAttrComputeCapabilityMajor:
      return card().major;
    case cudaDevAttrComputeCapabilityMinor:
      return card().minor;
    case cudaDevAttrL2CacheSize:
      return static_cast<int>(card().l2_bytes);
    case cudaDevAttrGlobalMemoryBusWidth:
      return card().memory_bus_bits;
    case cudaDevAttrCooperativeLaunch:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrStreamPrioritiesSupported:
      return 1;
    default:
      return 0;
  }
}

bool exists(int device) { return device >= 0 && device < num_devices(); }

}  // namespace
}  // namespace dry_cuda

extern "C" {

using namespace dry_cuda;

cudaError_t cudaGetDeviceCount(int* count) {
  if (const int code = dry_cuda_planted("cudaGetDeviceCount")) return report(code);
  *count = num_devices();
  return num_devices() > 0 ? cudaSuccess : report(cudaErrorNoDevice);
}

cudaError_t cudaGetDevice(int* device) {
  *device = current_device();
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (!exists(device)) return report(cudaErrorInvalidDevice);
  set_current_device(device);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int device) {
  if (!exists(device)) return report(cudaErrorInvalidDevice);
  *value = attribute(which);
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (!exists(device)) return report(cudaErrorInvalidDevice);
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "dry %s (no kernel runs)",
                card().name.data());
  properties->totalGlobalMem = memory_bytes();
  properties->major = card().major;
  properties->minor = card().minor;
  properties->multiProcessorCount = card().multiprocessors;
  properties->warpSize = kWarp;
  properties->maxThreadsPerBlock = kThreadsOfBlock;
  properties->maxThreadsDim[0] = properties->maxThreadsDim[1] = kThreadsOfBlock;
  properties->maxThreadsDim[2] = kBlockDepth;
  properties->maxGridSize[0] = kGridWidth;
  properties->maxGridSize[1] = properties->maxGridSize[2] = kGridHeight;
  properties->sharedMemPerBlock = kSharedBytesUnasked;
  properties->sharedMemPerBlockOptin = card().shared_bytes_of_block;
  properties->sharedMemPerMultiprocessor = card().shared_bytes_of_multiprocessor;
  properties->reservedSharedMemPerBlock = kKib;
  properties->regsPerBlock = properties->regsPerMultiprocessor = kRegisters;
  properties->maxThreadsPerMultiProcessor = card().threads_of_multiprocessor;
  properties->maxBlocksPerMultiProcessor = card().blocks_of_multiprocessor;
  properties->l2CacheSize = static_cast<int>(card().l2_bytes);
  properties->totalConstMem = 64 * kKib;
  properties->memoryBusWidth = card().memory_bus_bits;
  properties->concurrentKernels = properties->unifiedAddressing = 1;
  properties->cooperativeLaunch = properties->canMapHostMemory = 1;
  properties->streamPrioritiesSupported = 1;
  properties->textureAlignment = 512;
  properties->pciBusID = device + 1;
  properties->uuid.bytes[sizeof properties->uuid.bytes - 1] = static_cast<char>(device + 1);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int device) {
  if (!exists(device)) return report(cudaErrorInvalidDevice);
  std::snprintf(text, static_cast<std::size_t>(size), "0000:%02x:00.0", device + 1);
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  if (!exists(device) || !exists(peer)) return report(cudaErrorInvalidDevice);
  *can = device != peer ? 1 : 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  return exists(peer) ? cudaSuccess : report(cudaErrorInvalidDevice);
}

}  // extern "C"
