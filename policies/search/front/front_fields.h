// Lists the fields of a front's file in order. A new field needs a member of a record, a line here,
// and an entry in reports/schema/front.schema.json. Private to this folder and to the test that
// compares the list with the schema.
#pragma once

#include "policies/base/field_value.h"
#include "policies/plan/plan_json.h"
#include "policies/search/front/front_json.h"
#include "policies/trace/by_phase.h"
#include "policies/trace/profile_json.h"

namespace rematch {

Json to_value(OptimizerKind optimizer);
void read_value(const JsonField& field, OptimizerKind& optimizer);

template <RecordOf<LayerRun> Run, class Visit>
void visit_fields(Run& run, Visit visit) {
  visit("layers", run.layers);
  visit("is_checkpointed", run.is_checkpointed);
  visit("regions", run.regions);
  visit("saves", run.saves);
  visit({"offloads", kLater | kOmitIfEmpty}, run.offloads);
}

template <RecordOf<HolderBytes> Holders, class Visit>
void visit_fields(Holders& holders, Visit visit) {
  for (const Holder holder : kAll<Holder>) {
    // a simulated step counts frozen parameters as kOther, so this field would always be 0
    if (holder == Holder::kFrozenParameters) continue;
    visit(to_string(holder).data(), holders[holder]);
  }
}

// The fields of a point that describe host memory and copies. They are omitted if the plan offloads
// nothing.
template <class Point>
struct HostOfPoint {
  Point& point;
  bool empty() const { return point.figures.host.copied_out.count == 0; }
};

template <class Point, class Visit>
void visit_fields(const HostOfPoint<Point>& of, Visit visit) {
  visit("peak_bytes", of.point.figures.host.peak);
  visit("copied_out_bytes", of.point.figures.host.copied_out);
  visit("copied_back_bytes", of.point.figures.host.copied_back);
  visit("copy_time_ns", of.point.copy_time);
}

// Returns the error of the calibrated prediction: its ratio to the measured time, minus one.
std::optional<double> step_time_error(const MeasuredFigures& figures);

template <RecordOf<MeasuredFigures> Figures, class Visit>
void visit_fields(Figures& figures, Visit visit) {
  visit("status", figures.status);
  visit("reason", figures.reason);
  visit("peak_allocated_bytes", figures.peak);
  // a placeholder; complete_point() writes the value
  visit("peak_equals_prediction", [] { return nullptr; });
  visit("step_time_ns", figures.step_time);
  visit("step_time_interval_ns", figures.step_interval);
  visit("calibrated_predicted_step_time_ns", figures.calibrated_step_time);
  visit("step_time_error_ratio", [&] { return step_time_error(figures); });
  visit("is_anchor", figures.is_anchor);
  visit({"lost_to", kNullIfEmpty}, figures.lost_to);
}

template <RecordOf<FrontPoint> Point, class Visit>
void visit_fields(Point& point, Visit visit) {
  auto& figures = point.figures;
  HostOfPoint<Point> host{point};
  visit("policy", [&] { return point.plan.policy; });
  visit("saves", point.saves);
  visit("layers", point.layers);
  visit("predicted_peak_allocated_bytes", figures.peak);
  visit("predicted_peak_phase", figures.peak_phase);
  visit("predicted_peak_scope", figures.peak_place);
  visit("predicted_holders_at_peak", figures.holders);
  visit("predicted_after_forward_bytes", figures.after_forward);
  visit("time_source", [] { return nullptr; });  // a placeholder; complete_point() writes the value
  visit("predicted_step_time_ns", point.step_time);
  visit("predicted_step_time_bound_ns", point.step_time_bound);
  visit({"predicted_step_time_gap_ns", kLater}, [&] { return point.step_time_gap(); });
  visit("predicted_recompute_ns", figures.recompute);
  visit({"predicted_communication_ns", kLater}, figures.communication);
  visit({"predicted_overlapped_step_time_ns", kLater}, [&] {
    const std::optional<StepRange> range = point.range();
    return range ? std::optional(range->all_overlaps()) : std::nullopt;
  });
  visit("predicted_recomputed_ops", figures.num_recomputed);
  visit({"predicted_recomputed_kernels", kLater}, figures.num_recomputed_kernels);
  visit({"measured", kLater}, point.measured);
  visit("plan_sha256", [&] { return plan_sha256(point.plan); });
  visit("plan", point.plan);
  visit({"predicted_host", kLater | kOmitIfEmpty | kNullIfEmpty}, host);
}

template <RecordOf<SimplePoint> Simple, class Visit>
void visit_fields(Simple& simple, Visit visit) {
  visit_fields(simple.point, visit);
  visit("more_peak_bytes", simple.more_peak);
  visit("more_step_time_ns", simple.more_time);
}

template <RecordOf<Baseline> ABaseline, class Visit>
void visit_fields(ABaseline& baseline, Visit visit) {
  visit_fields(baseline.point, visit);
  visit("is_matched", baseline.is_matched);
}

template <RecordOf<MeasuredFamily> Family, class Visit>
void visit_fields(Family& family, Visit visit) {
  visit("family", family.family);
  visit("predicted_hypervolume_ratio", family.predicted);
  visit("measured_hypervolume_ratio", family.measured);
  visit("measured_hypervolume_beyond_noise_ratio", family.measured_beyond_noise);
}

template <RecordOf<FrontMeasurement> Measurement, class Visit>
void visit_fields(Measurement& measurement, Visit visit) {
  visit("chosen_by", measurement.chosen_by);
  visit("anchors", measurement.anchors);
  visit("calibration", [] {
    return "measured step time = offset + slope * predicted, least squares over the anchors";
  });
  visit("calibration_offset_ns", measurement.line.offset_ns);
  visit("calibration_slope", measurement.line.slope);
  visit("control_interval", measurement.control_interval);
  visit("num_measured", measurement.num_measured);
  visit("num_equal_peaks", measurement.num_equal_peaks);
  visit({"workspace_bytes", kLater}, measurement.workspace);
  visit("median_step_time_error_ratio", measurement.median_error_ratio);
  visit("worst_step_time_error_ratio", measurement.worst_error_ratio);
  visit("predicted_hypervolume_ratio", measurement.predicted_hypervolume);
  visit("measured_hypervolume_ratio", measurement.measured_hypervolume);
  visit("baseline_families", measurement.families);
}

template <RecordOf<MemoryReserve> Reserve, class Visit>
void visit_fields(Reserve& reserve, Visit visit) {
  visit("context_bytes", reserve.context);
  visit("communicators_bytes", reserve.communicators);
  visit("fragmentation_bytes", reserve.fragmentation);
  visit("asked_bytes", reserve.asked);
}

template <RecordOf<HostLink> Link, class Visit>
void visit_fields(Link& link, Visit visit) {
  visit("to_host_bytes_per_second", link.to_host_bytes_per_second);
  visit("to_device_bytes_per_second", link.to_device_bytes_per_second);
  visit("source", link.source);
  visit({"hidden_out_ns", kLater}, link.hidden_out);
  visit({"hidden_back_ns", kLater}, link.hidden_back);
}

template <RecordOf<Front> AFront, class Visit>
void visit_fields(AFront& front, Visit visit) {
  visit({"complete", kLater}, front.is_complete);
  visit("schedule", front.schedule);
  visit("num_plans_found", front.num_plans_found);
  visit("time_gap_ns", front.time_gap);
  visit("transient_gap_bytes", front.transient_gap);
  visit("verdict", front.verdict);
  visit("knee", front.knee);
  visit("hypervolume_ratio", front.hypervolume);
  visit("baseline_hypervolume_ratio", front.baseline_hypervolume);
  visit({"measurement", kLater}, front.measurement);
  visit("nothing_recomputed", front.nothing_recomputed);
  visit({"none", kLater | kOmitIfEmpty}, front.none);
  visit("points", front.points);
  visit("baselines", front.baselines);
}

template <RecordOf<FrontRecord> Record, class Visit>
void visit_fields(Record& record, Visit visit) {
  visit("model", record.model);
  visit("dimensions", record.dimensions);
  visit("dtype", record.dtype);
  visit({"ops", kLater}, record.ops);
  visit({"git_commit", kLater}, record.git_commit);
  visit({"git_dirty", kLater}, record.git_dirty);
  visit({"date", kLater | kOmitIfEmpty}, record.date);
  visit({"reproduce", kLater | kOmitIfEmpty}, record.reproduce);
  visit("trace_sha256", record.trace_sha256);
  visit("device", record.device);
  visit({"card", kLater | kOmitIfEmpty}, record.card);
  visit({"attention_backend", kLater | kOmitIfEmpty}, record.attention_backend);
  visit({"device_memory_bytes", kLater}, record.device_memory);
  visit({"reserve", kLater | kOmitIfEmpty}, record.reserve);
  visit("time_source", record.time_source);
  visit("optimizer", record.optimizer);
  visit({"world", kLater}, record.world);
  visit({"layout", kLater | kNullIfEmpty}, record.layout);
  visit("budget_bytes", record.budget);
  visit("max_slowdown_ratio", record.max_slowdown_ratio);
  visit("answer", record.answer);
  visit({"links", kLater | kOmitIfEmpty}, record.links);
  visit({"ceilings", kLater | kOmitIfEmpty}, record.ceilings);
  visit({"host_link", kLater | kOmitIfEmpty}, record.host_link);
  visit({"simple", kLater}, record.simple);
  visit_fields(record.front, visit);
}

}  // namespace rematch
