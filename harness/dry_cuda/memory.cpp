// Device memory. An allocation only reserves address space, which the program cannot access, as on
// a real device. Shadow pages behind the reserved space store the content of small copies. Shadow
// pages use no memory until they are written.
#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "harness/dry_cuda/capture.h"
#include "harness/dry_cuda/card.h"
#include "harness/dry_cuda/runtime.h"

namespace dry_cuda {
namespace {

constexpr std::size_t kMib = std::size_t{1} << 20;
constexpr std::size_t kGranule = 2 * kMib;  // granularity of cudaMalloc, as cudaMemGetInfo shows it
// About as much as a CUDA context takes on an H100.
constexpr std::size_t kContextBytes = 520 * kMib;

struct Allocation {
  std::size_t bytes;
  std::size_t mapped_bytes;  // size of the reserved address space; 0 for host memory
  int device;
};

struct Variable {
  std::size_t bytes;
  void* on_device;
};

using Allocations = std::map<std::uintptr_t, Allocation>;

struct Memory {
  std::mutex mutex;
  const std::size_t most_copied_bytes = setting("DRY_CUDA_COPY_BYTES", kMib);
  Allocations allocations;
  std::vector<std::size_t> taken_bytes = std::vector<std::size_t>(num_devices(), kContextBytes);
  std::vector<std::size_t> peak_bytes = taken_bytes;
};

// Device variables, by the address of their host symbols. nvcc's start-up code registers the
// variables before main(), which is too early to read the settings.
struct Variables {
  std::mutex mutex;
  std::unordered_map<const void*, Variable> by_symbol;
};

Variables& variables() {
  static Variables* const made = new Variables;
  return *made;
}

// This object is never destroyed, because some destructors of static objects free device memory.
Memory& memory() {
  static Memory* const made = new Memory;
  return *made;
}

std::uintptr_t number_of(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

// The caller of each function below holds the lock.

Allocations::iterator find(const void* address) {
  Allocations& all = memory().allocations;
  auto found = all.upper_bound(number_of(address));
  if (found == all.begin()) return all.end();
  --found;
  return number_of(address) < found->first + found->second.bytes ? found : all.end();
}

// The host memory that stores the content of an address. `room` is the number of bytes from the
// address to the end of the allocation.
struct Place {
  char* bytes;
  bool is_device;
  std::size_t room;
};

Place place_of(const void* address) {
  const auto found = find(address);
  char* const bytes = static_cast<char*>(const_cast<void*>(address));
  if (found == memory().allocations.end() || found->second.mapped_bytes == 0) {
    return {bytes, false, SIZE_MAX};
  }
  return {bytes + found->second.mapped_bytes, true,
          found->first + found->second.bytes - number_of(address)};
}

// Address of the next allocation. Addresses only increase and are the same in every run, so that
// choices of LibTorch's allocator that depend on addresses are reproducible.
std::uintptr_t next_address = std::uintptr_t{1} << 45;

// Maps inaccessible pages, followed by shadow pages of the same size. Returns null if no address
// space is free.
char* map_pages(std::size_t mapped_bytes) {
  void* const wanted = reinterpret_cast<void*>(next_address);
  void* const pages =
      mmap(wanted, 2 * mapped_bytes, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (pages == MAP_FAILED) return nullptr;
  next_address += 2 * mapped_bytes;
  char* const start = static_cast<char*>(pages);
  mprotect(start + mapped_bytes, mapped_bytes, PROT_READ | PROT_WRITE);
  return start;
}

const char* copy_name(bool to_device, bool from_device) {
  if (to_device) return from_device ? "DtoD" : "HtoD";
  return from_device ? "DtoH" : "HtoH";
}

cudaError_t copy(const char* call, void* to, const void* from, std::size_t bytes,
                 cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  DryCudaRecord record{};
  std::function<void()> effect;
  {
    const std::lock_guard lock(memory().mutex);
    const Place target = place_of(to);
    const Place source = place_of(from);
    if (bytes > target.room || bytes > source.room) return report(cudaErrorInvalidValue);
    record.name = copy_name(target.is_device, source.is_device);
    const bool is_of_host = !target.is_device && !source.is_device;
    if (is_of_host || bytes <= memory().most_copied_bytes) {
      effect = [=] { std::memmove(target.bytes, source.bytes, bytes); };
    } else if (!target.is_device) {
      effect = [=] { std::memset(target.bytes, 0, bytes); };
    }
  }
  record.call = call;
  record.kind = DRY_CUDA_COPY;
  record.device = device_of(stream);
  record.bytes = bytes;
  record.stream = number_of(stream);
  return submit(record, std::move(effect));
}

cudaError_t set(const char* call, void* to, int value, std::size_t bytes, cudaStream_t stream) {
  std::function<void()> effect;
  {
    const std::lock_guard lock(memory().mutex);
    const Place target = place_of(to);
    if (bytes > target.room) return report(cudaErrorInvalidValue);
    if (bytes <= memory().most_copied_bytes) {
      effect = [=] { std::memset(target.bytes, value, bytes); };
    }
  }
  DryCudaRecord record{};
  record.name = "memset";
  record.call = call;
  record.kind = DRY_CUDA_SET;
  record.device = device_of(stream);
  record.bytes = bytes;
  record.stream = number_of(stream);
  return submit(record, std::move(effect));
}

void add_host_memory(void* address, std::size_t bytes) {
  const std::lock_guard lock(memory().mutex);
  memory().allocations[number_of(address)] = {bytes, 0, current_device()};
}

void forget_host_memory(void* address) {
  const std::lock_guard lock(memory().mutex);
  memory().allocations.erase(number_of(address));
}

}  // namespace
}  // namespace dry_cuda

extern "C" {

using namespace dry_cuda;

uint64_t dry_cuda_allocated_bytes(int device) {
  const std::lock_guard lock(memory().mutex);
  return memory().taken_bytes.at(device);
}

uint64_t dry_cuda_peak_bytes(int device) {
  const std::lock_guard lock(memory().mutex);
  return memory().peak_bytes.at(device);
}

cudaError_t cudaMalloc(void** address, size_t bytes) {
  *address = nullptr;
  if (const cudaError_t error = check_unsafe_call("cudaMalloc")) return error;
  if (const int code = dry_cuda_planted("cudaMalloc")) return report(code);
  if (bytes == 0) return cudaSuccess;
  const std::lock_guard lock(memory().mutex);
  const int device = current_device();
  std::size_t& taken = memory().taken_bytes.at(device);
  const std::size_t mapped = (bytes + kGranule - 1) / kGranule * kGranule;
  if (taken + mapped > memory_bytes()) return report(cudaErrorMemoryAllocation);
  char* const start = map_pages(mapped);
  if (start == nullptr) return report(cudaErrorMemoryAllocation);
  memory().allocations[number_of(start)] = {bytes, mapped, device};
  taken += mapped;
  std::size_t& peak = memory().peak_bytes.at(device);
  peak = std::max(peak, taken);
  *address = start;
  return cudaSuccess;
}

cudaError_t cudaFree(void* address) {
  if (address == nullptr) return cudaSuccess;
  if (const cudaError_t error = check_unsafe_call("cudaFree")) return error;
  const std::lock_guard lock(memory().mutex);
  const auto found = memory().allocations.find(number_of(address));
  if (found == memory().allocations.end() || found->second.mapped_bytes == 0) {
    return report(cudaErrorInvalidValue);
  }
  munmap(address, 2 * found->second.mapped_bytes);
  memory().taken_bytes.at(found->second.device) -= found->second.mapped_bytes;
  memory().allocations.erase(found);
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** address, size_t bytes, unsigned) {
  if (const cudaError_t error = check_unsafe_call("cudaHostAlloc")) return error;
  constexpr std::size_t kPage = 4096;
  *address = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
  if (*address == nullptr) return report(cudaErrorMemoryAllocation);
  add_host_memory(*address, bytes);
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* address) {
  if (const cudaError_t error = check_unsafe_call("cudaFreeHost")) return error;
  forget_host_memory(address);
  std::free(address);
  return cudaSuccess;
}

cudaError_t cudaHostRegister(void* address, size_t bytes, unsigned) {
  add_host_memory(address, bytes);
  return cudaSuccess;
}

cudaError_t cudaHostUnregister(void* address) {
  forget_host_memory(address);
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  const std::lock_guard lock(memory().mutex);
  *total_bytes = memory_bytes();
  *free_bytes = memory_bytes() - memory().taken_bytes.at(current_device());
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  *attributes = {};
  attributes->device = cudaInvalidDeviceId;
  const std::lock_guard lock(memory().mutex);
  const auto found = find(address);
  // the memory does not come from CUDA
  if (found == memory().allocations.end()) return cudaSuccess;
  const bool is_host = found->second.mapped_bytes == 0;
  attributes->type = is_host ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
  attributes->device = found->second.device;
  attributes->devicePointer = const_cast<void*>(address);
  if (is_host) attributes->hostPointer = attributes->devicePointer;
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  if (const cudaError_t error = check_unsafe_call("cudaMemcpy")) return error;
  return copy("cudaMemcpy", to, from, bytes, nullptr);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  return copy("cudaMemcpyAsync", to, from, bytes, stream);
}

cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes,
                                cudaStream_t stream) {
  return copy("cudaMemcpyAsync", to, from, bytes, stream);
}

cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  if (const cudaError_t error = check_unsafe_call("cudaMemset")) return error;
  return set("cudaMemset", to, value, bytes, nullptr);
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return set("cudaMemsetAsync", to, value, bytes, stream);
}

void __cudaRegisterVar(void**, char* symbol, char*, const char*, int, size_t bytes, int, int) {
  const std::lock_guard lock(variables().mutex);
  variables().by_symbol[symbol] = {bytes, nullptr};
}

cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
  const std::lock_guard lock(variables().mutex);
  const auto found = variables().by_symbol.find(symbol);
  if (found == variables().by_symbol.end()) return report(cudaErrorInvalidSymbol);
  Variable& variable = found->second;
  if (variable.on_device == nullptr) {
    const cudaError_t result = cudaMalloc(&variable.on_device, variable.bytes);
    if (result != cudaSuccess) return result;
  }
  *address = variable.on_device;
  return cudaSuccess;
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset,
                               cudaMemcpyKind) {
  void* address = nullptr;
  const cudaError_t result = cudaGetSymbolAddress(&address, symbol);
  if (result != cudaSuccess) return result;
  return copy("cudaMemcpyToSymbol", static_cast<char*>(address) + offset, from, bytes, nullptr);
}

}  // extern "C"
