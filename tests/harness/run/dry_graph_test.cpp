// Captures training steps into CUDA graphs on the dry device, and compares the launches of a replay
// with those of the step itself.
#include <ATen/Context.h>
#include <ATen/ops/zeros.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <map>
#include <set>
#include <string>

#include "harness/dry_cuda/kernel_names.h"
#include "harness/run/passes/early_end.h"
#include "harness/run/prediction/predicted_point.h"
#include "harness/run/variants.h"
#include "harness/training/replayed_step.h"
#include "harness/training/training.h"
#include "kernels/grouped/grouped_mm.h"
#include "policies/catalogue/catalogue.h"
#include "tests/harness/run/dry_points.h"
#include "tests/support/cuda.h"
#include "tests/support/policy_matrix.h"

namespace rematch::testing {
namespace {

using Catch::Contains;
using Launches = std::map<std::string, std::int64_t>;

Launches launches() {
  Launches counted;
  for (const DryCudaRecord& record : dry_cuda::records()) ++counted[record.name];
  return counted;
}

// Before a launch of the graph, LibTorch also fills in the seed and the offset of a generator.
Launches launches_of_graph() {
  Launches counted;
  for (const DryCudaRecord& record : dry_cuda::records()) {
    if (std::string(record.call) == "cudaGraphLaunch") ++counted[record.name];
  }
  return counted;
}

RunSettings settings_of(const MatrixModel& model, const std::string& policy) {
  RunSettings settings;
  settings.request.model = std::get<ModelSpec>(make_spec(model.preset, model.dimensions));
  settings.request.model.dtype = model.dtype;
  settings.request.policies = std::get<std::vector<Policy>>(parse_policies(policy));
  settings.request.schedules = {Schedule::kWholeRegion};
  settings.request.device = "cuda";
  return settings;
}

std::unique_ptr<Training> training_of(const RunSettings& settings,
                                      std::function<void(std::int64_t)> begin_step = {}) {
  TrainingSettings of_training;
  of_training.begin_step = std::move(begin_step);
  of_training.model = settings.request.model;
  of_training.device = at::Device(at::kCUDA, 0);
  of_training.determinism = Determinism::kFastest;
  auto training = std::make_unique<Training>(of_training);
  const auto variants = std::get<std::vector<Variant>>(make_variants(settings));
  training->use_plan(variants.front().plan, variants.front().identity.schedule);
  return training;
}

struct StepLaunches {
  Launches by_ops;
  Launches by_replay;
  // How far the step advances the random generator.
  std::uint64_t drawn_by_ops = 0;
  std::uint64_t drawn_by_replay = 0;
};

StepLaunches launches_of(const MatrixModel& model, const std::string& policy) {
  use_grouped_mm_on_device();  // as in the processes of points with --cuda-graph
  const auto training = training_of(settings_of(model, policy));
  ReplayedStep replayed(*training, at::Device(at::kCUDA, 0));
  StepListener nobody;
  StepLaunches found;
  const at::Generator generator = at::globalContext().defaultGenerator(at::Device(at::kCUDA, 0));
  const std::vector<Batch> batches = training->batches_of_step(0);
  replayed.run([&] {
    for (int step = 0; step < 2; ++step) training->step(step, nobody);
    training->use_batches(batches);  // so that launches which make batches do not count
    dry_cuda_reset();
    const std::uint64_t before = generator.get_offset();
    training->step(2, nobody);
    found.drawn_by_ops = generator.get_offset() - before;
    training->use_batches({});
    found.by_ops = launches();
  });
  replayed.capture(3);
  struct Counted final : StepListener {
    void before_step() override { dry_cuda_reset(); }
  } counted;
  const std::uint64_t before = generator.get_offset();
  replayed.step(4, counted);
  found.drawn_by_replay = generator.get_offset() - before;
  found.by_replay = launches_of_graph();
  return found;
}

TEST_CASE("a replay launches the kernels and copies of a step, under every kind of policy",
          "[device]") {
  REMATCH_NEEDS_CUDA();
  for (MatrixModel model : matrix_models()) {
    model.dtype = "bfloat16";
    for (const char* policy :
         {"none", "full", "attn_only", "nth_last(2)", "offload_inputs(full)", "save_mm"}) {
      CAPTURE(model.preset, model.dimensions.contains("fused_ops"), policy);
      const StepLaunches found = launches_of(model, policy);
      CHECK(found.by_ops.size() > 10);
      CHECK(found.by_replay == found.by_ops);
    }
  }
}

Point point_with_graph(const MatrixModel& model, const std::string& policy) {
  return point_of(model.preset, model.dimensions, policy, "cuda", [&](RunSettings& settings) {
    settings.request.model.dtype = model.dtype;
    settings.request.cuda_graph = true;
  });
}

// Compares the executed ops of each phase and the peak with the prediction.
void check_prediction(const MatrixModel& model, const std::string& policy) {
  const Point point = point_with_graph(model, policy);
  c10::getDeviceAllocator(at::kCUDA)->emptyCache();
  PointRecord record = run(point, Pass::kExact, 1);
  CAPTURE(record.reason);
  REQUIRE(record.status == PointStatus::kOk);
  record.effect = point.variant.effect;
  add_prediction(point.variant, 1, record);
  check_counts(point.variant, 1, record);
  CHECK(record.status == PointStatus::kOk);
  CHECK(record.memory->peak_requested->count - record.memory->workspace->count ==
        record.memory->predicted_peak_requested->count);
}

// LibTorch's kernel for experts in float32 reads on the host where their rows end.
TEST_CASE("a mixture of experts is captured in float32, with the predicted ops and peak",
          "[device]") {
  REMATCH_NEEDS_CUDA();
  for (MatrixModel model : matrix_models()) {
    if (model.preset != "moe_small" && model.preset != "deepseek_small") continue;
    model.dtype = "float32";
    for (const char* policy : {"none", "full", "save_mm", "sac_grouped"}) {
      CAPTURE(model.preset, model.dimensions.contains("fused_ops"), policy);
      const StepLaunches found = launches_of(model, policy);
      CHECK(found.by_replay == found.by_ops);
      std::int64_t by_device = 0;
      for (const auto& [name, count] : found.by_replay) {
        if (name.find("rematch_grouped_gemm") != std::string::npos) by_device += count;
      }
      CHECK(by_device > 0);
      check_prediction(model, policy);
    }
  }
}

// Recompute must draw the numbers that forward drew, and must not advance the generator.
TEST_CASE("steps with dropout and several micro-batches draw in a replay as op by op", "[device]") {
  REMATCH_NEEDS_CUDA();
  MatrixModel model = matrix_models().front();
  model.dtype = "bfloat16";
  model.dimensions["dropout_percent"] = 10;
  model.dimensions["accumulate"] = 2;
  std::set<std::uint64_t> advances;
  for (const char* policy : {"none", "full"}) {
    CAPTURE(policy);
    const StepLaunches found = launches_of(model, policy);
    CHECK(found.by_replay == found.by_ops);
    CHECK(found.drawn_by_ops > 0);
    CHECK(found.drawn_by_replay == found.drawn_by_ops);
    advances.insert(found.drawn_by_ops);
  }
  CHECK(advances.size() == 1);
}

TEST_CASE("a point whose step reads on the host is refused, and the reason names the op",
          "[device]") {
  REMATCH_NEEDS_CUDA();
  const at::Tensor value = at::zeros({}, at::TensorOptions().device(at::Device(at::kCUDA, 0)));
  const RunSettings settings = settings_of(matrix_models().front(), "none");
  const auto training = training_of(settings, [&](std::int64_t) { value.item(); });
  ReplayedStep replayed(*training, at::Device(at::kCUDA, 0));
  StepListener nobody;
  replayed.run([&] { training->step(0, nobody); });
  PassPosition position;
  PointRecord record;
  run_to_early_end(position, at::Device(at::kCUDA, 0), record, [&] { replayed.capture(1); });
  CHECK(record.status == PointStatus::kRefused);
  CHECK_THAT(record.reason, Contains("aten::_local_scalar_dense in forward: ") &&
                                Contains("cannot be captured") &&
                                Contains("leave out --cuda-graph"));
}

TEST_CASE("the record of a point says that its timed steps were replays", "[device]") {
  REMATCH_NEEDS_CUDA();
  const MatrixModel model = matrix_models().front();
  const PointRecord timed = run(point_with_graph(model, "full"), Pass::kTime);
  CAPTURE(timed.reason);
  REQUIRE(timed.time.has_value());
  CHECK(timed.time->replayed == true);
  CHECK(timed.time->phases.empty());
  CHECK(timed.time->samples.front().size() == 2);
  const PointRecord exact = run(point_with_graph(model, "full"));
  CHECK(exact.status == PointStatus::kOk);
  CHECK(exact.kernels.has_value());
}

}  // namespace
}  // namespace rematch::testing
