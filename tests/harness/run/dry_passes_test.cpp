// Tests passes on the dry CUDA device: launches, waits of the host, events, and peaks of the
// allocator.
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <array>

#include <set>

#include "harness/dry_cuda/kernel_names.h"
#include "harness/measure/clocks.h"
#include "harness/profile/activity.h"
#include "harness/run/prediction/predicted_point.h"
#include "policies/base/json.h"
#include "policies/base/rejected.h"
#include "tests/harness/run/dry_points.h"
#include "tests/support/policy_matrix.h"

namespace rematch::testing {
namespace {

// The first point runs before the engine has installed its hooks in this process.
TEST_CASE("points with and without a plan can be measured in succession", "[device]") {
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

TEST_CASE(
    "values that the dry device cannot know are absent, and the device's name says that no kernel "
    "runs",
    "[device]") {
  REMATCH_NEEDS_CUDA();
  if (!on_dry_device()) return;
  const PointRecord record = run(point_of("llama_small", kSmallLlama, "full"));
  CHECK(record.device == "cuda-dry");
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

// The model has two layers and runs two steps: 4 attention ops in forward, and 4 more if blocks are
// recomputed.
TEST_CASE("attention kernels are counted by class and phase, and equal the counts of attention ops",
          "[device]") {
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
  point.settings.request.policies = std::get<std::vector<Policy>>(parse_policies(policy));
  point.settings.request.no_effect = NoEffect::kAllow;
  auto variants = make_variants(point.settings);
  if (std::holds_alternative<Rejected>(variants)) return std::nullopt;
  point.variant = std::move(std::get<std::vector<Variant>>(variants).front());
  return point;
}

// The kernel record already checks that kernels and executed ops agree, by class and phase. This
// test adds that executed ops equal predicted ops.
TEST_CASE("every policy of the catalogue launches the predicted kernels, by class and phase",
          "[device]") {
  REMATCH_NEEDS_CUDA();
  // Plans that were already tested. Policies often make the same plan.
  std::set<std::string> plans;
  for (const std::string& policy : matrix_policies()) {
    std::optional<Point> point = point_if_not_refused(policy);
    if (!point || !plans.insert(plan_sha256(point->variant.plan)).second) continue;
    PointRecord record = run(*point);
    record.effect = point->variant.effect;
    check_counts(point->variant, 2, record);
    CAPTURE(policy, record.reason, record.kernels_reason);
    CHECK(record.status == PointStatus::kOk);
    REQUIRE(record.kernels.has_value());
    CHECK(record.kernels->invalid == "");
    CHECK(record.kernels->note == "");
    for (std::size_t phase = 0; phase < kNumPhases; ++phase) {
      CHECK(count_of(record.kernels->count[phase], std::string("attention_forward")) ==
            count_of(record.counts->by_class[phase], OpClass::kAttentionForward));
    }
  }
  CHECK(plans.size() >= 20);
}

// Heads of the model share keys. LibTorch's own attention has no kernel for this, so it would run
// matmuls.
TEST_CASE("times name the attention kernel that ran: the requested kernel, or LibTorch's choice",
          "[device]") {
  REMATCH_NEEDS_CUDA();
  Point point = point_of("llama_small", kSmallLlama, "none");
  point.variant.identity.attention_backend = "math";
  for (const bool left_to_it : {false, true}) {
    point.settings.libtorch_chooses_attention = left_to_it;
    const PointRequest request = request_for(point.settings, point.variant, Pass::kTime, 1);
    const PointRecord record = run_passes(request_from_json(request_to_json(request)));
    CAPTURE(left_to_it, record.reason);
    REQUIRE(record.time.has_value());
    CHECK(record.time->attention_backend == (left_to_it ? "efficient" : "math"));
  }
}

TEST_CASE("deterministic mode does not launch kernels that fill uninitialized memory", "[device]") {
  REMATCH_NEEDS_CUDA();
  TrainingSettings settings;
  settings.model = std::get<ModelSpec>(make_spec("llama_small", kSmallLlama));
  settings.device = c10::Device(c10::kCUDA, 0);
  const Training training(settings);
  dry_cuda_reset();
  at::empty({1000}, at::TensorOptions().device(settings.device));
  CHECK(dry_cuda_size() == 0);
}

class Synchronizations final : public StepListener {
 public:
  void before_step() override { before_ = dry_cuda_synchronizations(); }
  void after_optimizer() override { inside = dry_cuda_synchronizations() - before_; }
  std::uint64_t inside = 99;

 private:
  std::uint64_t before_ = 0;
};

TEST_CASE("the host never waits inside a step", "[device]") {
  REMATCH_NEEDS_CUDA();
  for (const char* policy : {"none", "full"}) {
    const Point point = point_of("llama_small", kSmallLlama, policy);
    TrainingSettings settings;
    settings.model = point.settings.request.model;
    settings.device = c10::Device(c10::kCUDA, 0);
    settings.determinism = Determinism::kFastest;
    Training training(settings);
    training.use_plan(point.variant.plan, point.variant.identity.schedule);
    Synchronizations listener;
    training.step(0, listener);
    CHECK(listener.inside == 0);
  }
}

// On the dry device's clock, each kernel takes 1000 ns.
TEST_CASE("device events time the phases, and the host waits only at the start and end of a step",
          "[device]") {
  REMATCH_NEEDS_CUDA();
  const c10::Device device(c10::kCUDA, 0);
  const at::Tensor a = at::empty({64, 64}, at::TensorOptions().device(device));
  at::Tensor out = at::empty({64, 64}, at::TensorOptions().device(device));
  at::mm_out(out, a, a);
  StepClock clock(device);
  const std::uint64_t before = dry_cuda_synchronizations();
  clock.begin();
  at::mm_out(out, a, a);
  clock.part_done(Phase::kForward);
  at::mm_out(out, a, a);
  at::mm_out(out, a, a);
  clock.part_done(Phase::kBackward);
  at::mm_out(out, a, a);
  clock.part_done(std::nullopt);
  at::mm_out(out, a, a);
  clock.part_done(Phase::kForward);
  CHECK(dry_cuda_synchronizations() == before + 1);
  clock.end();
  CHECK(dry_cuda_synchronizations() == before + 2);
  using std::chrono::nanoseconds;
  CHECK((clock.by_phase() ==
         std::array{nanoseconds(2000), nanoseconds(0), nanoseconds(2000), nanoseconds(0)}));
  CHECK(clock.whole().count() > 0);
}

TEST_CASE(
    "times are measured without deterministic mode unless requested, and the record states the "
    "mode",
    "[device]") {
  REMATCH_NEEDS_CUDA();
  Point point = point_of("llama_small", kSmallLlama, "none");
  PointRecord record = run(point, Pass::kTime, 1);
  CAPTURE(record.reason);
  REQUIRE(record.time.has_value());
  CHECK(record.time->repeatable_bits == false);
  CHECK_FALSE(at::globalContext().deterministicAlgorithms());
  point.settings.request.timed_as = Determinism::kRepeatableBits;
  record = run(point, Pass::kTime, 1);
  CHECK(record.time->repeatable_bits == true);
  CHECK(at::globalContext().deterministicAlgorithms());
}

TEST_CASE("timed steps report the allocator's peaks, which equal the peaks of the memory pass",
          "[device]") {
  REMATCH_NEEDS_CUDA();
  Point point = point_of("llama_small", kSmallLlama, "full");
  point.settings.request.timed_as =
      Determinism::kRepeatableBits;  // makes the time pass run the same program as the memory pass
  const PointRecord timed = run(point, Pass::kTime, 2);
  const PointRecord exact = run(point);
  CAPTURE(timed.reason, exact.reason);
  REQUIRE(timed.time.has_value());
  REQUIRE(exact.memory.has_value());
  CHECK(timed.time->peak_requested->count == exact.memory->peak_requested->count);
  CHECK(timed.time->peak_allocated->count == exact.memory->peak_allocated->count);
  CHECK(*timed.time->peak_reserved >= *timed.time->peak_allocated);
}

TEST_CASE("each of two alternating plans has its own peak, regardless of earlier measurements",
          "[device]") {
  REMATCH_NEEDS_CUDA();
  TurnsRequest request;
  for (const char* policy : {"none", "full"}) {
    const Point point = point_of("llama_small", kSmallLlama, policy);
    request.arms.push_back(request_for(point.settings, point.variant, Pass::kTime, 2));
  }
  request.rule = {.least = 3, .most = 3};
  const std::vector<PointRecord> records = run_turns(request);
  REQUIRE(records.size() == 2);
  for (std::size_t arm = 0; arm < 2; ++arm) {
    CAPTURE(records[arm].reason);
    REQUIRE(records[arm].time.has_value());
    CHECK(records[arm].time->samples.size() == 3);
    const PointRecord alone = run_passes(request.arms[arm]);
    CHECK(records[arm].time->peak_requested == alone.time->peak_requested);
  }
  CHECK(*records[1].time->peak_requested < *records[0].time->peak_requested);
}

TEST_CASE("a point runs only on the named device", "[device]") {
  REMATCH_NEEDS_CUDA();
  const Point point = point_of("llama_small", kSmallLlama, "full", "cuda:1");
  dry_cuda_reset();
  const PointRecord record = run(point);
  CAPTURE(record.reason);
  CHECK(record.status == PointStatus::kOk);
  CHECK(dry_cuda_size() > 0);
  for (const DryCudaRecord& launched : dry_cuda::records()) REQUIRE(launched.device == 1);
}

}  // namespace
}  // namespace rematch::testing
