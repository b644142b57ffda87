#include "harness/run/prediction/predicted_point.h"

#include <chrono>
#include <cstdint>

#include "harness/run/children/rank_records.h"
#include "harness/run/passes/flop_limit.h"
#include "harness/run/passes/op_counts.h"
#include "harness/training/device.h"
#include "policies/trace/profile.h"

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
  point.predicted_counts = times(variant.predicted_counts.by_class, num_steps);
  point.recomputed_step_flops = variant.recomputed_step_flops;
  if (point.ranks) {
    point.ranks->predicted_collectives =
        times(collectives_in(variant.predicted_counts.by_op), num_steps);
  }
  if (!point.memory) return;
  point.memory->predicted_peak_allocated = variant.prediction.memory.peak_allocated;
  point.memory->predicted_after_forward = variant.prediction.memory.after_forward;
  if (const auto& host = variant.prediction.memory.host; host && point.memory->host) {
    point.memory->host->predicted_peak = host->peak;
    point.memory->host->predicted_copied_out = host->copied_out;
    point.memory->host->predicted_copied_back = host->copied_back;
  }
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
  const auto differs =
      first_difference(times(variant.predicted_counts.by_op, num_steps), point.counts->by_op);
  point.effect->counts_equal_prediction = !differs.has_value();
  if (!differs) return;
  point.effect->detail = differs->op + " in " + std::string(to_string(differs->phase)) +
                         ": executed " + std::to_string(differs->other) + ", predicted " +
                         std::to_string(differs->one);
  if (point.status != PointStatus::kOk) return;
  point.status = PointStatus::kInvalid;
  point.reason = "executed other ops than predicted: " + point.effect->detail;
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
