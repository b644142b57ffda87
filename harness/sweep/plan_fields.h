// The fields of a sweep's plan, in their order. A field is a member in comparison_plan.h, a line
// here, and an entry in reports/schema/sweep_plan.schema.json. Private to this folder and to the
// test that holds the schema to it.
#pragma once

#include "harness/sweep/comparison_plan.h"
#include "policies/base/field_value.h"

namespace rematch {

template <RecordOf<PlannedComparison> Comparison, class Visit>
void visit_fields(Comparison& comparison, Visit visit) {
  visit("id", comparison.id);
  visit("model", comparison.spec.preset);
  visit("dimensions", comparison.spec.dimensions);
  visit("dtype", comparison.spec.dtype);
  visit("seed", comparison.seed);
  visit("policies", comparison.policies);
  visit("schedule", comparison.schedule);
  visit("repetitions", comparison.num_repeats);
  visit("num_points", comparison.num_points);
  visit("arguments", comparison.arguments);
  visit("least_predicted_peak_bytes", comparison.predicted.least_peak);
  visit("most_predicted_peak_bytes", comparison.predicted.most_peak);
  visit("predicted_time_ms", comparison.predicted.time);
}

// All but the plan's id, which is the hash of these.
template <RecordOf<ComparisonPlan> Plan, class Visit>
void visit_fields(Plan& plan, Visit visit) {
  visit("tool_version", plan.tool_version);
  visit("device", plan.device);
  visit("stale_after_ms", plan.stale_after);
  visit("comparisons", plan.comparisons);
}

}  // namespace rematch
