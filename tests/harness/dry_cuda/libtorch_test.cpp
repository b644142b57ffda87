// Runs LibTorch's own CUDA code on the dry device: its allocator, its choice of kernels, its
// threads.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/autograd/autograd.h>

#include <thread>

#include "harness/dry_cuda/kernel_names.h"
#include "tests/support/catch.h"

namespace dry_cuda {
namespace {

constexpr std::int64_t kMib = std::int64_t{1} << 20;
constexpr std::int64_t kGib = kMib << 10;

const bool settings_made = [] {
  setenv("DRY_CUDA_DEVICES", "2", 1);
  setenv("DRY_CUDA_CARD", "h100", 1);
  // The defaults of these settings differ between the supported versions of LibTorch.
  setenv("TORCH_CUBLAS_WORKSPACE_CACHE", "1", 1);
  setenv("TORCH_CUBLASLT_UNIFIED_WORKSPACE", "1", 1);
  return true;
}();

at::TensorOptions on(c10::ScalarType dtype, c10::DeviceIndex device = 0) {
  return at::TensorOptions().device(at::Device(at::kCUDA, device)).dtype(dtype);
}

struct Sizes {
  std::int64_t requested, allocated, reserved;
  bool operator==(const Sizes&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Sizes& sizes) {
  return out << sizes.requested << " " << sizes.allocated << " " << sizes.reserved;
}

c10::CachingDeviceAllocator::DeviceStats statistics() {
  return c10::getDeviceAllocator(at::kCUDA)->getDeviceStats(0);
}

Sizes sizes() {
  const auto all = statistics();
  return {all.requested_bytes[0].current, all.allocated_bytes[0].current,
          all.reserved_bytes[0].current};
}

Sizes operator-(const Sizes& a, const Sizes& b) {
  return {a.requested - b.requested, a.allocated - b.allocated, a.reserved - b.reserved};
}

void start_cuda() { at::empty({1}, on(at::kFloat)); }

void empty_cache() { c10::getDeviceAllocator(at::kCUDA)->emptyCache(); }

// The allocator rounds requests up to 512 bytes. A block of 10 MiB or more gets its own segment,
// whose size is a multiple of 2 MiB. Smaller blocks share segments of 20 MiB. If less than 1 MiB of
// a segment would remain, the block takes the whole segment.
TEST_CASE("LibTorch's allocator rounds sizes and splits segments as on a GPU") {
  start_cuda();
  const auto taken_by = [](at::IntArrayRef shape) {
    empty_cache();
    const Sizes before = sizes();
    const at::Tensor tensor = at::empty(shape, on(at::kBFloat16));
    return sizes() - before;
  };
  CHECK(taken_by({31200, 1536}) == Sizes{95846400, 96468992, 96468992});
  CHECK(taken_by({5200, 1024}) == Sizes{10649600, 10649600, 12582912});
  CHECK(taken_by({1000, 700}) == Sizes{1400000, 1400320, 20 * kMib});
}

TEST_CASE("a matmul launches one named kernel, and the first matmul allocates cuBLAS's workspace") {
  start_cuda();
  const c10::cuda::CUDAStreamGuard own(
      c10::cuda::getStreamFromPool());  // a new stream, which no other test has used
  const at::Tensor a = at::empty({512, 1024}, on(at::kBFloat16));
  const at::Tensor b = at::empty({1024, 256}, on(at::kBFloat16));
  const at::Tensor bias = at::empty({256}, on(at::kBFloat16));
  at::Tensor out = at::empty({512, 256}, on(at::kBFloat16));
  Sizes before = sizes();
  dry_cuda_reset();
  at::mm_out(out, a, b);
  CHECK(num_kernels("") == 1);
  CHECK(num_kernels("dry_gemm_bf16_m256_n512_k1024_b1") == 1);
  CHECK((sizes() - before).allocated == 32 * kMib);
  before = sizes();
  at::addmm_out(out, bias, a, b);
  CHECK(num_kernels("dry_gemm_lt") == 1);
  CHECK((sizes() - before).allocated == 0);
  before = sizes();
  at::mm_out(out, a, b);
  at::addmm_out(out, bias, a, b);
  CHECK((sizes() - before).allocated == 0);
  const c10::cuda::CUDAStreamGuard other(c10::cuda::getStreamFromPool());
  at::mm_out(out, a, b);
  CHECK((sizes() - before).allocated == 32 * kMib);
}

TEST_CASE("each thread that runs a matmul has its own cuBLAS workspace") {
  start_cuda();
  const at::Tensor a = at::empty({64, 64}, on(at::kFloat));
  at::Tensor out = at::empty({64, 64}, on(at::kFloat));
  at::mm_out(out, a, a);
  const Sizes before = sizes();
  std::thread([&] { at::mm_out(out, a, a); }).join();
  CHECK((sizes() - before).allocated == 32 * kMib);
}

// The shapes are those of a DiT. Keys are split over several multiprocessors only if too many of
// the 132 multiprocessors would otherwise be idle.
TEST_CASE("flash attention chooses its kernels by the number of multiprocessors") {
  const auto launches = [](std::int64_t heads, std::int64_t queries, std::int64_t keys) {
    const at::Tensor q = at::empty({1, heads, queries, 128}, on(at::kBFloat16));
    const at::Tensor k = at::empty({1, heads, keys, 128}, on(at::kBFloat16));
    dry_cuda_reset();
    at::_scaled_dot_product_flash_attention(q, k, k, 0.0, false, false, std::nullopt);
    return std::vector<std::int64_t>{num_kernels("flash_fwd_kernel"),
                                     num_kernels("flash_fwd_splitkv_kernel"),
                                     num_kernels("flash_fwd_splitkv_combine_kernel")};
  };
  CHECK(launches(12, 31200, 31200) == std::vector<std::int64_t>{1, 0, 0});
  CHECK(launches(12, 31200, 512) == std::vector<std::int64_t>{1, 0, 0});
  CHECK(launches(30, 512, 512) == std::vector<std::int64_t>{1, 0, 0});
  CHECK(launches(12, 512, 512) == std::vector<std::int64_t>{0, 1, 1});
}

TEST_CASE("backward launches kernels from autograd's own thread for the device") {
  const at::Tensor x = at::ones({64, 64}, on(at::kFloat)).requires_grad_(true);
  dry_cuda_reset();
  const at::Tensor loss = at::mm(x, x).sum();
  const std::set<std::uint64_t> forward = launching_threads();
  CHECK(forward.size() == 1);
  dry_cuda_reset();
  loss.backward();
  CHECK(num_kernels("dry_gemm") == 2);
  for (const DryCudaRecord& record : records()) {
    if (std::string(record.name).starts_with("dry_gemm")) CHECK(forward.count(record.thread) == 0);
  }
}

TEST_CASE("out of memory raises LibTorch's own error, after a retry") {
  start_cuda();
  const at::Tensor kept = at::empty({50 * kGib}, on(at::kByte));
  at::empty({20 * kGib}, on(at::kByte));  // freed at once, but its memory stays in the allocator's
                                          // cache
  const std::int64_t retries = statistics().num_alloc_retries;
  const at::Tensor fits_without_the_cache = at::empty({25 * kGib}, on(at::kByte));
  CHECK(statistics().num_alloc_retries == retries + 1);
  CHECK_THROWS_AS(at::empty({5 * kGib}, on(at::kByte)), c10::OutOfMemoryError);
  CHECK(statistics().num_ooms == 1);
}

TEST_CASE("two devices have separate memory and streams") {
  const at::Tensor first = at::empty({8 * kMib}, on(at::kByte, 0));
  const std::uint64_t before = dry_cuda_allocated_bytes(1);
  const at::Tensor second = at::empty({8 * kMib}, on(at::kByte, 1));
  CHECK(dry_cuda_allocated_bytes(1) > before);
  dry_cuda_reset();
  const at::Tensor sum = second + 1;
  REQUIRE(records().size() == 1);
  CHECK(records()[0].device == 1);
  CHECK_THROWS_AS(first + second, c10::Error);
  const at::Tensor moved = first.to(second.device());
  CHECK(records().back().bytes == static_cast<std::uint64_t>(8 * kMib));
}

TEST_CASE("a scalar that is copied to the device and back keeps its value") {
  CHECK(at::scalar_tensor(7.5, at::kFloat).to(on(at::kFloat)).item<float>() == 7.5f);
}

}  // namespace
}  // namespace dry_cuda
