// The fields of a file of loads, in their order. A field is a member in loads.h, a line here, and
// an entry in reports/schema/loads.schema.json. Private to this folder and to the test that holds
// the schema to it.
#pragma once

#include "policies/search/front/front_fields.h"
#include "policies/search/front/loads.h"

namespace rematch {

template <RecordOf<LoadPlan> Plan, class Visit>
void visit_fields(Plan& plan, Visit visit) {
  visit("load", plan.load);
  visit("predicted_tokens_per_second", plan.tokens_per_second);
  visit("predicted_tokens_per_second_all_ranks", plan.tokens_per_second_all_ranks);
  visit("predicted_step_time_ns", plan.step_time);
  visit("predicted_peak_allocated_bytes", plan.peak);
  visit("predicted_recomputed_ops", plan.num_recomputed);
  visit({"saves", kNullIfEmpty}, plan.saves);
}

template <RecordOf<LoadsRecord> Record, class Visit>
void visit_fields(Record& record, Visit visit) {
  visit("maximized", record.maximized);
  visit("complete", record.is_complete);
  visit("model", record.model);
  visit("dimensions", record.dimensions);
  visit("dtype", record.dtype);
  visit("device", record.device);
  visit("time_source", record.time_source);
  visit({"links", kLater | kOmitIfEmpty}, record.links);
  visit("optimizer", record.optimizer);
  visit("schedule", record.schedule);
  visit("world", record.world);
  visit("num_batches", record.num_batches);
  visit("budget_bytes", record.budget);
  visit("dimension", record.dimension);
  visit("least", record.least);
  visit("most", record.most);
  visit("largest_that_fits", record.largest);
  visit("best", record.best);
  visit("git_commit", record.git_commit);
  visit("git_dirty", record.git_dirty);
  visit("tried", record.tried);
}

}  // namespace rematch
