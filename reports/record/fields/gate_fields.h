// The fields of a gate record's parts. A field is a member in gate.h, a line here, and an entry in
// reports/schema/gate.schema.json.
#pragma once

#include "policies/base/record_fields.h"
#include "reports/record/fields/compare_fields.h"
#include "reports/record/gate.h"

namespace rematch {

Json to_value(GateVerdict verdict);
void read_value(const JsonField& field, GateVerdict& verdict);
void read_value(const JsonField& field, NoiseRecord& noise);

// "not_measured" where the reference ran once: a reader must not take it for no noise. Measured and
// null: one of its losses is not finite.
template <RecordOf<NoiseRecord> Noise, class Visit>
void visit_fields(Noise& noise, Visit visit) {
  visit("status", [&] { return noise.reference_runs > 1 ? "measured" : "not_measured"; });
  visit("reference_runs", noise.reference_runs);
  visit({"largest_difference", kWholeIfWhole}, noise.largest_difference);
  visit({"detects", kNullIfEmpty}, noise.detects);
}

template <RecordOf<CheckRecord> Check, class Visit>
void visit_fields(Check& check, Visit visit) {
  visit("check", check.check);
  visit({"tier", kNullIfEmpty}, check.tier);
  visit("verdict", check.verdict);
  visit("reason", check.reason);
  visit({"measured", kWholeIfWhole}, check.measured);
  visit({"limit", kWholeIfWhole}, check.limit);
  visit("first_different_step", check.first_different_step);
  visit({"first_different_tensor", kNullIfEmpty}, check.first_different_tensor);
  visit("noise", check.noise);
}

template <RecordOf<GatedPoint> Point, class Visit>
void visit_fields(Point& point, Visit visit) {
  visit("key", point.key);
  visit("model", point.model);
  visit("policy", point.policy);
  visit("schedule", point.schedule);
  visit("device", point.device);
  visit({"reference_policy", kNullIfEmpty}, point.reference_policy);
  visit({"reference_key", kNullIfEmpty}, point.reference_key);
  visit("verdict", point.verdict);
  visit("checks", point.checks);
}

template <RecordOf<CurvesRecord> Curves, class Visit>
void visit_fields(Curves& curves, Visit visit) {
  visit("losses", curves.losses);
  visit("reference_losses", curves.reference_losses);
  visit("compared_steps", curves.compared_steps);
  visit("first_step", curves.first_step);
  visit("last_step", curves.last_step);
  visit("checks", curves.checks);
}

template <RecordOf<GateRecord> Record, class Visit>
void visit_fields(Record& record, Visit visit) {
  visit("report", record.report);
  visit("reference", record.reference);
  visit("environment_differences", record.environment_differences);
  visit("verdict", record.verdict);
  visit("points", record.points);
  visit({"curves", kLater}, record.curves);
}

}  // namespace rematch
