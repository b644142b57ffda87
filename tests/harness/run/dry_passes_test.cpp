// Points on the dry device: what a pass records of the host's side of CUDA, and how it ends.
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include <set>

#include "harness/measure/device_clock.h"
#include "harness/profile/activity_recorder.h"
#include "tests/harness/run/dry_points.h"
#include "tests/support/dry_cuda/kernel_names.h"
#include "tests/support/policy_matrix.h"

namespace rematch::testing {
namespace {

TEST_CASE("a matmul is recorded as one kernel, linked to the op that launched it", "[device]") {
  REMATCH_NEEDS_CUDA();
  const auto options = at::TensorOptions().device(c10::Device(c10::kCUDA, 0));
  const at::Tensor a = at::empty({64, 64}, options);
  at::Tensor out = at::empty({64, 64}, options);
  at::mm_out(out, a, a);  // what the first one loads
  synchronize(a.device());
  const std::unique_ptr<ActivityRecorder> recorder = record_activity();
  at::mm_out(out, a, a);
  synchronize(a.device());
  recorder->discard();
  recorder->begin(1, "forward aten::mm");
  at::mm_out(out, a, a);
  recorder->end();
  synchronize(a.device());
  const Activity activity = recorder->finish();
  REQUIRE(activity.kernels.size() == 1);
  REQUIRE(activity.links.size() == 1);
  CHECK(activity.links[0].op_call == 1);
  CHECK(activity.links[0].correlation == activity.kernels[0].correlation);
  CHECK(activity.dropped == 0);
}

// The first point trains without the engine's hooks before the counting pass installs them.
TEST_CASE("points are measured with and without a plan, one after the other", "[device]") {
  REMATCH_NEEDS_CUDA();
  for (const char* policy : {"none", "full", "none", "attn_only"}) {
    const PointRecord record = run(point_of("llama_small", kSmallLlama, policy));
    CAPTURE(policy, record.reason);
    CHECK(record.status == PointStatus::kOk);
    CHECK(record.kernels_reason == "");
    REQUIRE(record.kernels.has_value());
    CHECK(record.kernels->invalid == "");
  }
}

TEST_CASE("what the dry device cannot know is absent, and its name says so", "[device]") {
  REMATCH_NEEDS_CUDA();
  if (!on_dry_device()) return;
  const PointRecord record = run(point_of("llama_small", kSmallLlama, "full"));
  CHECK(record.steps.empty());
  CHECK_FALSE(record.parity.has_value());
  CHECK_FALSE(record.time.has_value());
  REQUIRE(record.kernels.has_value());
  for (const auto& phase : record.kernels->time) CHECK(phase.empty());
  CHECK_FALSE(record.kernels->slowdown_ratio.has_value());
  CHECK_THAT(cuda_device()->name, Catch::Contains("no kernel runs"));
}

template <typename Key>
std::int64_t count_of(const std::map<Key, std::int64_t>& counts, const Key& name) {
  const auto found = counts.find(name);
  return found == counts.end() ? 0 : found->second;
}

// Two layers in two steps: 4 attention ops forward, and again where their block is recomputed.
TEST_CASE("kernels are counted by class and phase as the ops that launch them", "[device]") {
  REMATCH_NEEDS_CUDA();
  constexpr auto kForward = static_cast<std::size_t>(Phase::kForward);
  constexpr auto kRecompute = static_cast<std::size_t>(Phase::kRecompute);
  constexpr auto kBackward = static_cast<std::size_t>(Phase::kBackward);
  for (const auto& [policy, recomputed] : std::vector<std::pair<std::string, std::int64_t>>{
           {"none", 0}, {"full", 4}, {"attn_only", 0}}) {
    Point point = point_of("llama_small", kSmallLlama, policy);
    const PointRecord record = run(point);
    CAPTURE(policy, record.reason);
    REQUIRE(record.kernels.has_value());
    const auto& kernels = record.kernels->count;
    CHECK(count_of(kernels[kForward], std::string("attention_forward")) == 4);
    CHECK(count_of(kernels[kRecompute], std::string("attention_forward")) == recomputed);
    CHECK(count_of(kernels[kBackward], std::string("attention_backward")) == 4);
    CHECK(count_of(record.counts->by_class[kRecompute], OpClass::kAttentionForward) == recomputed);
    CHECK(record.kernels->unknown_names.empty());
  }
}

std::optional<Point> point_if_not_refused(const std::string& policy) {
  Point point = point_of("llama_small", {{"layers", 4}, {"dim", 64}, {"tokens", 64}}, "none");
  point.settings.policies = std::get<std::vector<Policy>>(parse_policies(policy));
  point.settings.no_effect = NoEffect::kAllow;
  auto variants = make_variants(point.settings);
  if (std::holds_alternative<Rejected>(variants)) return std::nullopt;
  point.variant = std::move(std::get<std::vector<Variant>>(variants).front());
  return point;
}

// The kernel record holds the kernels' classes against the executed ops' in each phase.
TEST_CASE("every policy of the catalogue launches the kernels of its ops, by class and phase",
          "[device]") {
  REMATCH_NEEDS_CUDA();
  std::set<std::string> plans;  // policies often make the same one
  for (const std::string& policy : matrix_policies()) {
    std::optional<Point> point = point_if_not_refused(policy);
    if (!point || !plans.insert(plan_sha256(point->variant.plan)).second) continue;
    const PointRecord record = run(*point);
    CAPTURE(policy, record.reason, record.kernels_reason);
    CHECK(record.status == PointStatus::kOk);
    REQUIRE(record.kernels.has_value());
    CHECK(record.kernels->invalid == "");
    for (std::size_t phase = 0; phase < kNumPhases; ++phase) {
      CHECK(count_of(record.kernels->count[phase], std::string("attention_forward")) ==
            count_of(record.counts->by_class[phase], OpClass::kAttentionForward));
    }
  }
  CHECK(plans.size() >= 20);
}

TEST_CASE("no memory is filled that nobody asked to be filled", "[device]") {
  REMATCH_NEEDS_CUDA();
  TrainingSettings settings;
  settings.model = std::get<ModelSpec>(make_spec("llama_small", kSmallLlama));
  settings.device = c10::Device(c10::kCUDA, 0);
  const Training training(settings);
  dry_cuda_reset();
  at::empty({1000}, at::TensorOptions().device(settings.device));
  CHECK(dry_cuda_size() == 0);
}

TEST_CASE("memory that a library or the runtime does not get is out of memory as well",
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

}  // namespace
}  // namespace rematch::testing
