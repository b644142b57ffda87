#include "harness/run/predicted_point.h"

#include <chrono>
#include <cstdint>
#include <map>

#include "harness/run/device.h"
#include "harness/run/flop_limit.h"
#include "policies/trace/profile.h"
#include "policies/trace/same_op.h"

namespace rematch {
namespace {

// Libraries take it in the steps before; on meta there are none, so it is what there is more.
void add_workspace(const MemoryRecord& predicted, MemoryRecord& measured) {
  measured.predicted_peak_note = kTemporariesNotMeasured;
  if (!measured.baseline_requested || !predicted.baseline_requested) return;
  measured.workspace = *measured.baseline_requested - *predicted.baseline_requested;
}

}  // namespace

void add_prediction(const Variant& variant, int num_steps, PointRecord& point) {
  ClassCounts predicted = variant.predicted_counts.by_class;
  for (auto& phase : predicted) {
    for (auto& [op_class, executed] : phase) executed *= num_steps;
  }
  point.predicted_counts = predicted;
  point.recomputed_step_flops = variant.recomputed_step_flops;
  if (!point.memory) return;
  point.memory->predicted_peak_allocated = variant.prediction.memory.peak_allocated;
  point.memory->predicted_after_forward = variant.prediction.memory.after_forward;
  point.memory->predicted_peak_requested = variant.prediction.memory.peak_requested;
  if (names_cuda(point.device)) add_workspace(variant.prediction.memory, *point.memory);
  Bytes dead;
  for (const PlannedRegion& region : variant.plan.regions) {
    for (const PlannedOp& op : variant.plan.types[static_cast<std::size_t>(region.type)].ops) {
      if (op.dead_save) dead += op.bytes;
    }
  }
  point.memory->dead_save = dead;
}

void check_counts(const Variant& variant, int num_steps, PointRecord& point) {
  if (!point.counts) return;
  for (std::size_t phase = 0; phase < kNumPhases; ++phase) {
    std::map<std::string, std::int64_t> expected;
    for (const auto& [op, executed] : variant.predicted_counts.by_op[phase]) {
      expected[op] = executed * num_steps;
    }
    expected = with_one_name(expected);
    const std::map<std::string, std::int64_t> executed = with_one_name(point.counts->by_op[phase]);
    if (expected == executed) continue;
    std::map<std::string, std::int64_t> all = expected;
    all.insert(executed.begin(), executed.end());
    for (const auto& [op, unused] : all) {
      const std::int64_t predicted = expected.count(op) != 0 ? expected.at(op) : 0;
      const std::int64_t measured = executed.count(op) != 0 ? executed.at(op) : 0;
      if (predicted == measured) continue;
      point.effect->counts_equal_prediction = false;
      point.effect->detail = op + " in " + std::string(to_string(static_cast<Phase>(phase))) +
                             ": executed " + std::to_string(measured) + ", predicted " +
                             std::to_string(predicted);
      if (point.status == PointStatus::kOk) {
        point.status = PointStatus::kInvalid;
        point.reason = "executed other ops than predicted: " + point.effect->detail;
      }
      return;
    }
  }
  point.effect->counts_equal_prediction = true;
}

void add_flops(const Variant& variant, const Environment& environment, PointRecord& point) {
  if (!point.time || !point.time->step_median) return;
  point.step_flops = variant.step_flops;
  const double seconds = std::chrono::duration<double>(*point.time->step_median).count();
  point.implied_flops_per_second = static_cast<double>(variant.step_flops) / seconds;
  point.most_flops_per_second = most_flops_per_second(
      environment, point.device, variant.identity.dtype, variant.identity.threads);
  point.sheet_flops_per_second =
      sheet_flops_per_second(environment, point.device, variant.identity.dtype);
  if (point.sheet_flops_per_second) {
    const double could = *point.sheet_flops_per_second * seconds;
    const auto flops = static_cast<double>(variant.step_flops);
    point.hardware_flops_utilization = flops / could;
    point.model_flops_utilization =
        (flops - static_cast<double>(variant.recomputed_step_flops)) / could;
  }
  refuse_impossible_rate(point);
}

}  // namespace rematch
