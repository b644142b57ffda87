// Runs every policy on every family of models on the dry device. The executed ops must equal the
// predicted ops.
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "policies/trace/trace_op.h"
#include "tests/support/cuda.h"
#include "tests/support/policy_matrix.h"
#include "tests/support/seeds.h"

namespace rematch::testing {
namespace {

// Maps each op to its number of executions, for each phase. Names follow Note [One op, two names].
using Executed = std::vector<std::map<std::string, std::int64_t>>;

Executed executed_ops(const EngineFigures& figures) {
  Executed executed;
  for (const auto& phase : figures.counts.by_op) executed.push_back(with_one_name(phase));
  return executed;
}

using Plans = std::vector<std::pair<std::string, Schedule>>;

// Lists each different plan once, with one of the policies that make it. The first plan is that of
// policy `none`.
Plans different_plans(PolicyMatrix& matrix) {
  std::set<std::pair<std::string, Schedule>> plans;
  Plans found;
  for (const std::string& policy : matrix_policies()) {
    for (const Schedule schedule : matrix.schedules(policy)) {
      if (!plans.emplace(plan_sha256(*matrix.plan_of(policy)), schedule).second) continue;
      found.emplace_back(policy, schedule);
    }
  }
  return found;
}

// Tests that are not deep measure every plan on one model only. On the other models, they measure
// policy `none` and a sixteenth of the other plans.
Plans plans_to_measure(const Plans& all, bool every_plan, std::size_t first) {
  constexpr std::size_t kSlice = 16;
  if (every_plan || is_deep()) return all;
  Plans some = {all.front()};
  for (std::size_t i = 1 + first % kSlice; i < all.size(); i += kSlice) some.push_back(all[i]);
  return some;
}

// On CUDA, the strides of an attention gradient may differ from those on meta. The gradient is then
// copied before it is viewed.
TEST_CASE("on CUDA every policy of the catalogue executes the predicted ops", "[device]") {
  REMATCH_NEEDS_CUDA();
  std::size_t num_models = 0;
  for (MatrixModel model : matrix_models()) {
    for (const char* dtype : {"float32", "bfloat16"}) {
      model.dtype = dtype;
      PolicyMatrix matrix(model, at::Device(at::kCUDA, 0));
      const Plans all = different_plans(matrix);
      CHECK(all.size() >= 20);
      for (const auto& [policy, schedule] :
           plans_to_measure(all, /*every_plan=*/num_models == 0, num_models)) {
        CAPTURE(model.preset, dtype, model.dimensions.contains("fused_ops"), policy, schedule);
        CHECK(executed_ops(matrix.measured(policy, schedule)) ==
              executed_ops(matrix.predicted(policy, schedule)));
      }
      ++num_models;
    }
  }
}

// Packed weights add packed_silu_mul to the fused ops. The DiTs have rms_norm_rope and bias_gelu.
TEST_CASE("on CUDA every policy executes the predicted fused ops with packed weights", "[device]") {
  REMATCH_NEEDS_CUDA();
  std::set<std::string> fused_ops;
  for (MatrixModel model : matrix_models()) {
    const bool is_video = model.preset == "wan_small";
    if (!model.dimensions.contains("fused_ops") || !(is_video || model.preset == "llama_small")) {
      continue;
    }
    model.dtype = "bfloat16";
    model.dimensions["packed_weights"] = 1;
    if (!is_video) model.dimensions["kept_logits"] = 1;
    PolicyMatrix matrix(model, at::Device(at::kCUDA, 0));
    const Plans all = different_plans(matrix);
    CHECK(all.size() >= 20);
    for (const auto& [policy, schedule] : all) {
      CAPTURE(model.preset, policy, schedule);
      const Executed executed = executed_ops(matrix.measured(policy, schedule));
      CHECK(executed == executed_ops(matrix.predicted(policy, schedule)));
      for (const auto& phase : executed) {
        for (const auto& [op, count] : phase) {
          if (op.starts_with("rematch::")) fused_ops.insert(op);
        }
      }
    }
  }
  for (const char* op : {"bias_gelu", "rms_norm_rope", "packed_silu_mul", "layer_norm", "gated_add",
                         "add_rms_norm", "linear_cross_entropy_with_logits"}) {
    CAPTURE(op);
    CHECK(fused_ops.contains(std::string("rematch::") + op));
    CHECK(fused_ops.contains(std::string("rematch::") + op + "_backward"));
  }
}

}  // namespace
}  // namespace rematch::testing
