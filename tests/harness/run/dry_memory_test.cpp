// Tests the memory of points on the dry device: the allocator's peaks at full size, and how points
// end if memory is too small.
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include <set>

#include "harness/dry_cuda/kernel_names.h"
#include "harness/run/prediction/predicted_point.h"
#include "tests/harness/run/dry_points.h"
#include "tests/support/seeds.h"

namespace rematch::testing {
namespace {

// Runs the point with less and less device memory, until not even the model fits. Returns the
// phases that failed.
std::set<Phase> phases_that_run_out(const Point& point) {
  std::set<Phase> phases;
  // Empties the cache, because the peak would otherwise include memory of the previous point.
  c10::getDeviceAllocator(at::kCUDA)->emptyCache();
  const PointRecord whole = run(point);
  REQUIRE(whole.status == PointStatus::kOk);
  const auto total = static_cast<double>(cuda_device()->memory.count);
  const auto peak = static_cast<double>(whole.memory->peak_reserved->count);
  for (int share = 1; share < 10; ++share) {
    c10::getDeviceAllocator(at::kCUDA)->emptyCache();
    c10::cuda::CUDACachingAllocator::setMemoryFraction(peak * (1 - share / 20.0) / total, 0);
    const PointRecord record = run(point);
    c10::cuda::CUDACachingAllocator::setMemoryFraction(1, 0);
    CAPTURE(share, record.reason);
    if (record.status == PointStatus::kOk)
      continue;  // the point succeeded, because the allocator freed its cache
    REQUIRE(record.status == PointStatus::kOom);
    CHECK_THAT(record.reason, Catch::Contains("out of memory"));
    REQUIRE(record.failure.has_value());
    CHECK(record.failure->requested.value().count > 0);
    if (record.failure->phase) phases.insert(*record.failure->phase);
  }
  return phases;
}

TEST_CASE(
    "running out of device memory in forward, recompute or backward gives a result that names the "
    "phase",
    "[device]") {
  REMATCH_NEEDS_CUDA();
  // A model with few parameters, because the host must initialize them. The feed-forward of each
  // block allocates tensors of 512 MiB.
  const Dimensions many_tokens = {
      {"layers", 8}, {"dim", 64}, {"ffn", 1024}, {"tokens", 4096}, {"batch", 32}};
  const std::set<Phase> without = phases_that_run_out(point_of("llama_small", many_tokens, "none"));
  CHECK(without.count(Phase::kForward) == 1);
  CHECK(without.count(Phase::kRecompute) == 0);
  const std::set<Phase> with = phases_that_run_out(point_of("llama_small", many_tokens, "full"));
  CHECK(with.count(Phase::kRecompute) == 1);
  CHECK(without.count(Phase::kBackward) + with.count(Phase::kBackward) >= 1);
}

TEST_CASE("a failed allocation in a library or in the runtime counts as out of memory",
          "[device]") {
  REMATCH_NEEDS_CUDA();
  constexpr int kCublasAllocFailed = 3;
  constexpr int kMemoryAllocation = 2;  // cudaErrorMemoryAllocation
  dry_cuda_plant_failure("gemm", 0, kCublasAllocFailed);
  PointRecord record = run(point_of("llama_small", kSmallLlama, "none"));
  CAPTURE(record.reason);
  CHECK(record.status == PointStatus::kOom);
  CHECK_THAT(record.reason, Catch::Contains("CUBLAS_STATUS_ALLOC_FAILED"));
  dry_cuda_plant_failure("cudaLaunchKernel", 100, kMemoryAllocation);
  record = run(point_of("llama_small", kSmallLlama, "none"));
  CHECK(record.status == PointStatus::kOom);
  constexpr int kLaunchFailure = 719;
  dry_cuda_plant_failure("cudaLaunchKernel", 100, kLaunchFailure);
  record = run(point_of("llama_small", kSmallLlama, "none"));
  CHECK(record.status == PointStatus::kCrash);
}

// Unless the test is deep, reduces the model to two layers, because the host initializes their
// parameters in a tenth of the time. Two layers include every kind of layer.
Dimensions full_size(Dimensions dimensions) {
  if (!is_deep()) dimensions["layers"] = 2;
  return dimensions;
}

// Predictions exclude memory that kernels allocate internally, so they are compared with the bytes
// in use between ops. cuBLAS also has a workspace of 32 MiB for each thread that runs matmuls: the
// caller's thread and autograd's.
TEST_CASE("at full size, tensors take the predicted bytes, and libraries take the rest",
          "[device]") {
  REMATCH_NEEDS_CUDA();
  struct Case {
    const char* model;
    Dimensions dimensions;
    const char* optimizer;
  };
  for (const Case& which : {Case{"wan_1_3b", {{"tokens", 31200}, {"batch", 1}}, "adamw"},
                            Case{"llama3_8b", {{"tokens", 8192}, {"batch", 1}}, "none"}}) {
    for (const char* policy : {"none", "full", "attn_only"}) {
      Point point = point_of(
          which.model, full_size(which.dimensions), policy, "cuda", [&](RunSettings& settings) {
            settings.request.model.dtype = "bfloat16";
            settings.request.optimizer = optimizer_from_string(which.optimizer).value();
          });
      c10::getDeviceAllocator(at::kCUDA)->emptyCache();
      PointRecord record = run(point, Pass::kExact, 1);
      CAPTURE(which.model, policy, record.reason);
      REQUIRE(record.status == PointStatus::kOk);
      record.effect = point.variant.effect;
      add_prediction(point.variant, 1, record);
      const MemoryRecord& memory = *record.memory;
      const std::int64_t requested = memory.peak_requested->count;
      const std::int64_t predicted = memory.predicted_peak_requested->count;
      const std::int64_t workspace = memory.workspace->count;
      WARN(which.model << ", " << policy << ": requested " << requested << ", predicted "
                       << predicted << " and workspaces " << workspace << "; allocated "
                       << memory.peak_allocated->count << ", reserved "
                       << memory.peak_reserved->count);
      CHECK(workspace >= 2 * (32 << 20));
      CHECK(workspace <= 2 * (33 << 20));
      CHECK(requested == predicted + workspace);
      CHECK(memory.peak_allocated->count >= requested);
      CHECK(memory.peak_reserved->count >= memory.peak_allocated->count);
    }
  }
}

}  // namespace
}  // namespace rematch::testing
