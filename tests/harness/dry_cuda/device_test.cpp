// Calls the functions of the dry CUDA runtime as a program would.
#include <cuda_runtime_api.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "harness/dry_cuda/dry_cuda.h"
#include "tests/support/catch.h"

// The code that nvcc generates calls __cudaRegisterFunction() for each kernel when a program
// starts.
extern "C" void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*,
                                       dim3*, dim3*, int*);

namespace {

constexpr std::size_t kMib = std::size_t{1} << 20;
constexpr std::size_t kDeviceBytes = 1024 * kMib;
constexpr std::size_t kContextBytes = 520 * kMib;

// Sets variables before the first call to CUDA, as a user's environment does.
const bool settings_made = [] {
  setenv("DRY_CUDA_DEVICES", "2", 1);
  setenv("DRY_CUDA_MEMORY_BYTES", std::to_string(kDeviceBytes).c_str(), 1);
  setenv("DRY_CUDA_CARD", "l40s", 1);
  return true;
}();

char kernel;  // stands for the host function that nvcc generates for a kernel

void register_kernel() {
  static const char name[] = "a_kernel";
  __cudaRegisterFunction(nullptr, &kernel, nullptr, name, 0, nullptr, nullptr, nullptr, nullptr,
                         nullptr);
}

cudaError_t launch(dim3 grid, dim3 block, std::size_t shared_bytes = 0,
                   cudaStream_t stream = nullptr) {
  return cudaLaunchKernel(&kernel, grid, block, nullptr, shared_bytes, stream);
}

TEST_CASE(
    "the device has the properties of the requested card, and its name says that no kernel runs") {
  int count = 0;
  REQUIRE(cudaGetDeviceCount(&count) == cudaSuccess);
  CHECK(count == 2);
  cudaDeviceProp properties;
  REQUIRE(cudaGetDeviceProperties(&properties, 1) == cudaSuccess);
  CHECK(std::string(properties.name) == "dry l40s (no kernel runs)");
  CHECK(properties.major == 8);
  CHECK(properties.minor == 9);
  CHECK(properties.multiProcessorCount == 142);
  CHECK(properties.totalGlobalMem == kDeviceBytes);
  CHECK(cudaGetDeviceProperties(&properties, 2) == cudaErrorInvalidDevice);
  CHECK(cudaSetDevice(-1) == cudaErrorInvalidDevice);
  CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("a launch is recorded by name, and is refused if the CUDA runtime would refuse it") {
  register_kernel();
  dry_cuda_reset();
  REQUIRE(launch({7, 2, 1}, {128, 1, 1}, 1000) == cudaSuccess);
  REQUIRE(dry_cuda_size() == 1);
  const DryCudaRecord& record = *dry_cuda_record(0);
  CHECK(std::string(record.name) == "a_kernel");
  CHECK(record.kind == DRY_CUDA_KERNEL);
  CHECK(record.grid[0] == 7);
  CHECK(record.block[0] == 128);
  CHECK(record.shared_bytes == 1000);
  CHECK(record.end_ns - record.start_ns == 1000);

  CHECK(launch({1, 1, 1}, {1025, 1, 1}) == cudaErrorInvalidConfiguration);
  CHECK(launch({0, 1, 1}, {32, 1, 1}) == cudaErrorInvalidConfiguration);
  CHECK(launch({1, 65536, 1}, {32, 1, 1}) == cudaErrorInvalidConfiguration);
  const char nobody = 0;
  CHECK(cudaLaunchKernel(&nobody, {1}, {1}, nullptr, 0, nullptr) == cudaErrorInvalidDeviceFunction);
  CHECK(dry_cuda_size() == 1);
}

// A kernel gets up to 48 KiB by default. On an L40S it gets up to 99 KiB if it requests them.
TEST_CASE(
    "a kernel needs an attribute to use more than 48 KiB of shared memory, and cannot exceed the "
    "card's limit") {
  register_kernel();
  CHECK(launch({1}, {32}, (48 << 10) + 1) == cudaErrorInvalidValue);
  const auto which = cudaFuncAttributeMaxDynamicSharedMemorySize;
  CHECK(cudaFuncSetAttribute(&kernel, which, (99 << 10) + 1) == cudaErrorInvalidValue);
  REQUIRE(cudaFuncSetAttribute(&kernel, which, 99 << 10) == cudaSuccess);
  CHECK(launch({1}, {32}, 99 << 10) == cudaSuccess);
}

TEST_CASE("memory is allocated in multiples of 2 MiB, up to the device's size") {
  const std::uint64_t before = dry_cuda_allocated_bytes(0);
  CHECK(before == kContextBytes);
  void* small = nullptr;
  REQUIRE(cudaMalloc(&small, 1) == cudaSuccess);
  CHECK(dry_cuda_allocated_bytes(0) == before + 2 * kMib);
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  REQUIRE(cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess);
  CHECK(total_bytes == kDeviceBytes);
  CHECK(free_bytes == kDeviceBytes - before - 2 * kMib);

  void* rest = nullptr;
  CHECK(cudaMalloc(&rest, free_bytes + 1) == cudaErrorMemoryAllocation);
  CHECK(rest == nullptr);
  REQUIRE(cudaMalloc(&rest, free_bytes) == cudaSuccess);
  void* more = nullptr;
  CHECK(cudaMalloc(&more, 1) == cudaErrorMemoryAllocation);
  CHECK(dry_cuda_peak_bytes(0) == kDeviceBytes);
  CHECK(dry_cuda_peak_bytes(1) == kContextBytes);
  CHECK(cudaFree(static_cast<char*>(small) + 1) == cudaErrorInvalidValue);
  CHECK(cudaFree(small) == cudaSuccess);
  CHECK(cudaFree(small) == cudaErrorInvalidValue);
  CHECK(cudaFree(rest) == cudaSuccess);
}

TEST_CASE(
    "small copies keep their bytes, large copies give zeros, and no copy goes beyond its "
    "allocation") {
  constexpr std::size_t kLarge = 2 * kMib;
  std::vector<char> host(kLarge, 'a');
  void* device = nullptr;
  REQUIRE(cudaMalloc(&device, kLarge) == cudaSuccess);
  dry_cuda_reset();
  REQUIRE(cudaMemcpy(device, "seven..", 7, cudaMemcpyDefault) == cudaSuccess);
  REQUIRE(cudaMemcpy(host.data(), device, 7, cudaMemcpyDefault) == cudaSuccess);
  CHECK(std::string(host.data(), 8) == "seven..a");
  REQUIRE(cudaMemcpy(host.data(), device, kLarge, cudaMemcpyDefault) == cudaSuccess);
  CHECK(host == std::vector<char>(kLarge, '\0'));
  REQUIRE(dry_cuda_size() == 3);
  CHECK(std::string(dry_cuda_record(0)->name) == "HtoD");
  CHECK(std::string(dry_cuda_record(1)->name) == "DtoH");
  CHECK(dry_cuda_record(2)->bytes == kLarge);
  char* const last = static_cast<char*>(device) + kLarge - 4;
  CHECK(cudaMemcpy(last, host.data(), 4, cudaMemcpyDefault) == cudaSuccess);
  CHECK(cudaMemcpy(last, host.data(), 5, cudaMemcpyDefault) == cudaErrorInvalidValue);

  cudaPointerAttributes attributes;
  REQUIRE(cudaPointerGetAttributes(&attributes, last) == cudaSuccess);
  CHECK(attributes.type == cudaMemoryTypeDevice);
  REQUIRE(cudaPointerGetAttributes(&attributes, host.data()) == cudaSuccess);
  CHECK(attributes.type == cudaMemoryTypeUnregistered);
}

TEST_CASE(
    "a stream belongs to its device, and event times are computed from the recorded launches") {
  register_kernel();
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 0) == cudaSuccess);
  dry_cuda_reset();
  REQUIRE(launch({1}, {1}, 0, stream) == cudaSuccess);
  CHECK(dry_cuda_record(0)->device == 1);
  cudaEvent_t start = nullptr;
  cudaEvent_t end = nullptr;
  REQUIRE(cudaEventCreate(&start) == cudaSuccess);
  REQUIRE(cudaEventCreate(&end) == cudaSuccess);
  float milliseconds = 0;
  CHECK(cudaEventElapsedTime(&milliseconds, start, end) == cudaErrorInvalidResourceHandle);
  REQUIRE(cudaEventRecord(start, stream) == cudaSuccess);
  REQUIRE(launch({1}, {1}, 0, stream) == cudaSuccess);
  REQUIRE(launch({1}, {1}, 0, stream) == cudaSuccess);
  REQUIRE(cudaEventRecord(end, stream) == cudaSuccess);
  REQUIRE(cudaEventElapsedTime(&milliseconds, start, end) == cudaSuccess);
  CHECK(milliseconds == Approx(0.002));
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
  CHECK(launch({1}, {1}, 0, stream) == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventRecord(end, stream) == cudaErrorInvalidResourceHandle);
}

TEST_CASE("each thread has its own current device, and each record names its thread") {
  register_kernel();
  dry_cuda_reset();
  REQUIRE(launch({1}, {1}) == cudaSuccess);
  std::thread([] {
    cudaSetDevice(1);
    launch({1}, {1});
  }).join();
  REQUIRE(launch({1}, {1}) == cudaSuccess);
  REQUIRE(dry_cuda_size() == 3);
  CHECK(dry_cuda_record(1)->device == 1);
  CHECK(dry_cuda_record(2)->device == 0);
  CHECK(dry_cuda_record(0)->thread == dry_cuda_record(2)->thread);
  CHECK(dry_cuda_record(0)->thread != dry_cuda_record(1)->thread);
}

TEST_CASE("an injected failure occurs once, at the chosen call") {
  dry_cuda_plant_failure("cudaMalloc", 1, cudaErrorMemoryAllocation);
  void* address = nullptr;
  CHECK(cudaMalloc(&address, 1) == cudaSuccess);
  CHECK(cudaMalloc(&address, 1) == cudaErrorMemoryAllocation);
  CHECK(cudaMalloc(&address, 1) == cudaSuccess);
}

}  // namespace
