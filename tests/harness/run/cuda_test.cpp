// Tests points on CUDA. The executed ops must be those of the CPU, and the peak must equal the peak
// that CUDA's allocator reports.
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include <set>

#include "harness/measure/clocks.h"
#include "harness/profile/activity.h"
#include "harness/run/parity.h"
#include "harness/run/passes/passes.h"
#include "harness/run/variants.h"
#include "policies/catalogue/catalogue.h"
#include "tests/support/cuda.h"
#include "tests/support/policy_matrix.h"

namespace rematch {
namespace {

const at::Device kDevice(at::kCUDA, 0);

std::vector<Variant> variants_on(const std::string& device) {
  RunSettings settings;
  settings.request.model =
      std::get<ModelSpec>(make_spec("llama_small", {{"layers", 3}, {"dim", 64}}));
  settings.request.policies = std::get<std::vector<Policy>>(parse_policies("none,full,attn_only"));
  settings.request.device = device;
  return std::get<std::vector<Variant>>(make_variants(settings));
}

std::vector<PointRecord> measure_on(const std::string& device) {
  std::vector<PointRecord> points;
  for (const Variant& variant : variants_on(device)) {
    PointRequest request;
    request.pass = Pass::kExact;
    request.identity = variant.identity;
    request.policy = variant.policy;
    request.device = device;
    request.plan = variant.plan;
    request.num_steps = 2;
    points.push_back(run_passes(request));
  }
  return points;
}

TEST_CASE("a point on CUDA executes the same ops as on the CPU, with equal bits and a known peak",
          "[gpu]") {
  REMATCH_NEEDS_GPU();
  const std::vector<PointRecord> on_cpu = measure_on("cpu");
  const std::vector<PointRecord> on_cuda = measure_on("cuda");
  REQUIRE(on_cuda.size() == on_cpu.size());
  for (std::size_t index = 0; index < on_cuda.size(); ++index) {
    const PointRecord& point = on_cuda[index];
    CAPTURE(point.policy, point.reason);
    REQUIRE(point.status == PointStatus::kOk);
    CHECK((point.counts->by_class == on_cpu[index].counts->by_class));
    const ParityRecord parity = compare_steps(point, on_cuda.front());
    CHECK(parity.loss_bits_equal == true);
    CHECK(parity.gradient_bits_equal == true);
    CHECK(point.memory->peak_allocated <= point.memory->peak_reserved);
  }
  CHECK(on_cuda[1].memory->peak_allocated < on_cuda[0].memory->peak_allocated);
}

// Returns each family of models in three variants: eager ops in float32, fused ops in float32, and
// eager ops in bfloat16, which uses another attention kernel.
std::vector<testing::MatrixModel> models_to_compare() {
  std::vector<testing::MatrixModel> models = testing::matrix_models();
  for (std::size_t index = 0, num_models = models.size(); index < num_models; ++index) {
    testing::MatrixModel model = models[index];
    if (model.dimensions.count("fused_ops") != 0) continue;
    model.dtype = "bfloat16";
    models.push_back(std::move(model));
  }
  return models;
}

void check_bits_of_every_policy(const testing::MatrixModel& model) {
  testing::PolicyMatrix matrix(model, kDevice);
  const testing::StepBits none = matrix.bits("none", Schedule::kOnDemand);
  // Plans that were already tested. Policies often make the same plan.
  std::set<std::string> plans;
  for (const std::string& policy : testing::matrix_policies()) {
    for (const Schedule schedule : matrix.schedules(policy)) {
      if (!plans.insert(plan_sha256(*matrix.plan_of(policy)) + to_string(schedule).data()).second) {
        continue;
      }
      CAPTURE(model.preset, model.dtype, policy, to_string(schedule));
      const testing::StepBits bits = matrix.bits(policy, schedule);
      CHECK(bits.loss == none.loss);
      CHECK(bits.gradients == none.gradients);
    }
  }
  CHECK(plans.size() > 10);
}

// Each family has its own section. To run families in parallel, start one process for each, such as
// run_cuda_test NAME -c llama_small.
TEST_CASE(
    "on CUDA every policy of the catalogue has the same bits as no checkpointing, on every model",
    "[gpu]") {
  REMATCH_NEEDS_GPU();
  const std::vector<testing::MatrixModel> models = models_to_compare();
  std::set<std::string> families;
  for (const testing::MatrixModel& model : models) families.insert(model.preset);
  for (const std::string& family : families) {
    DYNAMIC_SECTION(family) {
      for (const testing::MatrixModel& model : models) {
        if (model.preset == family) check_bits_of_every_policy(model);
      }
    }
  }
}

TEST_CASE("a matmul is recorded as one kernel, linked to the op that launched it", "[device]") {
  REMATCH_NEEDS_CUDA();
  const auto options = at::TensorOptions().device(c10::Device(c10::kCUDA, 0));
  const at::Tensor a = at::empty({64, 64}, options);
  at::Tensor out = at::empty({64, 64}, options);
  at::mm_out(out, a, a);  // a warm-up, because the first matmul also loads kernels and libraries
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

}  // namespace
}  // namespace rematch
