// The fields of a point's records, in the order of CSV columns. A field is a member in point.h, a
// line here, and an entry in reports/schema/point.schema.json. Private to reports.
#pragma once

#include "policies/base/json_fwd.h"
#include "policies/base/record_fields.h"
#include "policies/plan/plan_json.h"
#include "policies/trace/phase.h"
#include "reports/record/point.h"

namespace rematch {

Json to_value(PointStatus status);
Json to_value(const HeldBytes& holders);
Json to_value(const MemoryTimeline& timeline);
void read_value(const JsonField& field, PointStatus& status);
void read_value(const JsonField& field, HeldBytes& holders);
void read_value(const JsonField& field, MemoryTimeline& timeline);

// These hold what is read to what else the record says.
void read_value(const JsonField& field, TimeQuality& quality);
void read_value(const JsonField& field, TimeRecord& time);
void read_value(const JsonField& field, StepRecord& step);

template <RecordOf<PointIdentity> Identity, class Visit>
void visit_fields(Identity& identity, Visit visit) {
  visit("model", identity.model);
  visit("dimensions", identity.dimensions);
  visit({"dtype", kColumn}, identity.dtype);
  visit({"ops", kColumn}, identity.ops);
  visit({"attention_backend", kColumn}, identity.attention_backend);
  visit({"optimizer", kColumn}, identity.optimizer);
  visit({"data", kColumn}, identity.data);
  visit({"seed", kColumn}, identity.seed);
  visit({"threads", kColumn}, identity.threads);
  visit({"world", kColumn}, identity.world);
  visit({"pretended_rank", kLater | kOmitIfEmpty}, identity.pretended_rank);
  visit("plan_sha256", identity.plan_sha256);
  visit("schedule", identity.schedule);
  visit("deterministic", identity.deterministic);
  visit("allocator", identity.allocator);
}

template <RecordOf<HostRecord> Host, class Visit>
void visit_fields(Host& host, Visit visit) {
  visit("peak_bytes", host.peak);
  visit("copied_out_bytes", host.copied_out);
  visit("copied_back_bytes", host.copied_back);
  visit("predicted_peak_bytes", host.predicted_peak);
  visit("predicted_copied_out_bytes", host.predicted_copied_out);
  visit("predicted_copied_back_bytes", host.predicted_copied_back);
  visit({"hidden_time_ns", kNotRepeated}, host.hidden_time);
  visit({"exposed_time_ns", kNotRepeated}, host.exposed_time);
}

template <RecordOf<MemoryRecord> Memory, class Visit>
void visit_fields(Memory& memory, Visit visit) {
  visit({"peak_allocated_bytes", kColumn}, memory.peak_allocated);
  visit({"predicted_peak_allocated_bytes", kColumn}, memory.predicted_peak_allocated);
  visit({"peak_transient_bytes", kNotRepeated | kColumn}, memory.peak_transient);
  visit({"peak_reserved_bytes", kNotRepeated | kColumn}, memory.peak_reserved);
  visit({"peak_phase", kColumn}, memory.peak_phase);
  visit({"peak_scope", kNullIfEmpty | kColumn}, memory.peak_scope);
  visit({"after_forward_bytes", kColumn}, memory.after_forward);
  visit({"parameter_bytes", kColumn}, memory.parameter);
  visit({"peak_requested_bytes", kLater}, memory.peak_requested);
  visit({"peak_device_used_bytes", kNotRepeated}, memory.peak_device_used);
  visit("baseline_bytes", memory.baseline);
  visit({"baseline_requested_bytes", kLater}, memory.baseline_requested);
  visit({"workspace_bytes", kLater}, memory.workspace);
  visit("holders_at_peak", memory.holders_at_peak);
  visit("peak_by_phase_bytes", memory.peak_by_phase);
  visit({"holders_by_phase", kLater | kNullIfEmpty}, memory.holders_by_phase);
  visit("dead_save_bytes", memory.dead_save);
  visit({"predicted_peak_requested_bytes", kLater}, memory.predicted_peak_requested);
  visit("predicted_after_forward_bytes", memory.predicted_after_forward);
  visit({"host", kLater | kOmitIfEmpty}, memory.host);
  visit({"predicted_peak_note", kLater | kOmitIfEmpty}, memory.predicted_peak_note);
  visit({"timeline", kNotRepeated}, memory.timeline);
}

template <RecordOf<StepRatioRecord> Ratio, class Visit>
void visit_fields(Ratio& ratio, Visit visit) {
  visit({"reference", kColumn, "step_reference"}, ratio.reference);
  visit({"ratio", kColumn, "step_ratio"}, ratio.ratio);
  visit({"interval", kColumn, "step_ratio_*"}, ratio.interval);
  visit({"verdict", kColumn, "step_verdict"}, ratio.verdict);
}

template <RecordOf<ControlRecord> Control, class Visit>
void visit_fields(Control& control, Visit visit) {
  visit("ratio", control.ratio);
  visit("interval", control.interval);
}

template <RecordOf<TimeQuality> Quality, class Visit>
void visit_fields(Quality& quality, Visit visit) {
  visit({"verdict", kColumn, "time_quality"}, quality.verdict);
  visit("noise_ratio", quality.noise_ratio);
  visit("drift_ratio", quality.drift_ratio);
  visit("reasons", quality.reasons);
  visit({"num_outliers", kLater}, quality.num_outliers);
}

template <RecordOf<DeviceStateRecord> State, class Visit>
void visit_fields(State& state, Visit visit) {
  visit("sm_clock_median_mhz", state.sm_clock_median_mhz);
  visit("sm_clock_least_mhz", state.sm_clock_least_mhz);
  visit("memory_clock_least_mhz", state.memory_clock_least_mhz);
  visit("temperature_most_celsius", state.temperature_most_celsius);
  visit("throttle_reasons", state.throttle_reasons);
  visit("other_processes", state.other_processes);
  visit("allocator_retries", state.allocator_retries);
  Field repeats{"round_repeats", kLater};
  repeats.former = "block_repeats";
  visit(repeats, state.round_repeats);
}

template <RecordOf<TimeRecord> Time, class Visit>
void visit_fields(Time& time, Visit visit) {
  visit({"step_median_ns", kColumn}, time.step_median);
  visit({"step_interval_ns", kColumn, "step_interval_*_ns"}, time.step_interval);
  visit("step_mad_ns", time.step_mad);
  visit("samples_ns", time.samples);
  visit({"starts", kLater}, time.starts);
  visit("phases_ns", time.phases);
  visit("classes_ns", time.classes);
  visit("step_ratio", time.ratio);
  visit({"control", kLater}, time.control);
  visit("quality", time.quality);
  visit({"device_state", kLater}, time.device_state);
  visit({"repeatable_bits", kLater}, time.repeatable_bits);
  visit({"attention_backend", kLater | kNullIfEmpty}, time.attention_backend);
}

template <RecordOf<StepRecord> Step, class Visit>
void visit_fields(Step& step, Visit visit) {
  visit("loss", step.loss);
  visit("loss_bits", step.loss_bits);
  visit({"gradient_norm_bits", kNullIfEmpty}, step.gradient_norm_bits);
  visit({"parameter_hash", kNullIfEmpty}, step.parameter_hash);
  visit({"generator_hash", kNullIfEmpty}, step.generator_hash);
  visit("gradient_hashes", step.gradient_hashes);
}

template <RecordOf<ParityRecord> Parity, class Visit>
void visit_fields(Parity& parity, Visit visit) {
  visit({"reference", kColumn, "parity_reference"}, parity.reference);
  visit({"reference_reason", kNullIfEmpty}, parity.reference_reason);
  visit("compared_steps", parity.compared_steps);
  visit({"loss_bits_equal", kColumn}, parity.loss_bits_equal);
  visit({"gradient_bits_equal", kColumn}, parity.gradient_bits_equal);
  visit("parameter_hash_equal", parity.parameter_hash_equal);
  visit("generator_hash_equal", parity.generator_hash_equal);
  visit("first_different_step", parity.first_different_step);
  visit({"first_different_tensor", kNullIfEmpty}, parity.first_different_tensor);
  visit("every_parameter_has_gradient", parity.every_parameter_has_gradient);
  visit({"first_parameter_without_gradient", kNullIfEmpty},
        parity.first_parameter_without_gradient);
}

template <RecordOf<EffectRecord> Effect, class Visit>
void visit_fields(Effect& effect, Visit visit) {
  visit({"same_as", kNullIfEmpty}, effect.same_as);
  visit("intended", effect.intended);
  visit({"counts_equal_prediction", kColumn}, effect.counts_equal_prediction);
  visit({"detail", kNullIfEmpty}, effect.detail);
}

template <RecordOf<KernelRecord> Kernels, class Visit>
void visit_fields(Kernels& kernels, Visit visit) {
  visit("counted_steps", kernels.counted_steps);
  visit("kernel_count", kernels.count);
  visit("kernel_time_ns", kernels.time);
  visit({"launches", kLater}, kernels.launches);
  visit("dropped_records", kernels.dropped_records);
  visit("unattributed_kernels", kernels.unattributed_kernels);
  visit("badly_stamped_records", kernels.badly_stamped_records);
  visit("unknown_time_ratio", kernels.unknown_time_ratio);
  visit("unknown_names", kernels.unknown_names);
  visit("slowdown_ratio", kernels.slowdown_ratio);
  visit({"note", kLater | kNullIfEmpty}, kernels.note);
  visit({"invalid", kNullIfEmpty}, kernels.invalid);
}

template <RecordOf<RankRecord> Rank, class Visit>
void visit_fields(Rank& rank, Visit visit) {
  visit("rank", rank.rank);
  visit("peak_allocated_bytes", rank.peak_allocated);
  visit("after_forward_bytes", rank.after_forward);
}

template <RecordOf<RanksRecord> Ranks, class Visit>
void visit_fields(Ranks& ranks, Visit visit) {
  visit("counted_steps", ranks.counted_steps);
  visit("collectives", ranks.collectives);
  visit("collective_bytes", ranks.collective_bytes);
  visit("predicted_collectives", ranks.predicted_collectives);
  visit("ranks", ranks.ranks);
  visit("worst_rank", ranks.worst_rank);
}

template <RecordOf<FailureRecord> Failure, class Visit>
void visit_fields(Failure& failure, Visit visit) {
  visit("exit_code", failure.exit_code);
  visit("signal", failure.signal);
  visit("requested_bytes", failure.requested);
  visit({"phase", kLater}, failure.phase);
}

// All but what stands in a point in another form: "counted_steps", "counts" and "ops", which are
// one record; its key; and what it repeats of its identity.
template <RecordOf<PointRecord> Point, class Visit>
void visit_fields(Point& point, Visit visit) {
  visit("policy", point.policy);
  visit("device", point.device);
  visit("status", point.status);
  visit({"reason", kNullIfEmpty | kNotRepeated}, point.reason);
  visit("failure", point.failure);
  visit("identity", point.identity);
  visit({"warm_up_steps", kLater | kOmitIfEmpty}, point.warm_up_steps);
  visit("predicted_counts", point.predicted_counts);
  visit("memory", point.memory);
  visit({"time", kNotRepeated}, point.time);
  visit({"kernels", kLater | kNotRepeated}, point.kernels);
  visit({"kernels_reason", kLater | kNullIfEmpty | kNotRepeated}, point.kernels_reason);
  visit({"ranks", kLater | kOmitIfEmpty}, point.ranks);
  visit("steps", point.steps);
  visit({"parity", kNotRepeated}, point.parity);
  visit("effect", point.effect);
  visit("executed_step_flops", point.step_flops);
  visit({"recomputed_step_flops", kLater}, point.recomputed_step_flops);
  visit({"implied_flops_per_second", kNotRepeated}, point.implied_flops_per_second);
  visit({"most_flops_per_second", kLater | kNotRepeated}, point.most_flops_per_second);
  visit({"sheet_flops_per_second", kLater | kNotRepeated}, point.sheet_flops_per_second);
  visit({"model_flops_utilization_ratio", kLater | kNotRepeated}, point.model_flops_utilization);
  visit({"hardware_flops_utilization_ratio", kLater | kNotRepeated},
        point.hardware_flops_utilization);
}

}  // namespace rematch
