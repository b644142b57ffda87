// The plan of a sweep: every comparison that the sweep file asks for, in the file's order, with its
// predictions. The same file and version give the same plan, byte for byte. To add a field, add a
// member, a line in the list below its struct, and an entry in
// reports/schema/sweep_plan.schema.json.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/preset/preset.h"
#include "policies/base/bytes.h"
#include "policies/base/json_fwd.h"
#include "policies/base/record_fields.h"
#include "policies/plan/policy.h"

namespace rematch {

// Predictions for a comparison, made before it runs. Absent if there was no trace to predict from.
struct ComparisonPrediction {
  // The peak of the variant that needs the least memory, which is a lower bound for the comparison.
  std::optional<Bytes> least_peak;
  std::optional<Bytes> most_peak;
  std::optional<std::chrono::milliseconds> time;  // time of the whole command
  bool operator==(const ComparisonPrediction&) const = default;
};

// One model, shape, dtype and seed with all its variants, measured together on one card.
struct PlannedComparison {
  std::string id;
  ModelSpec spec;
  std::uint64_t seed = 0;
  std::vector<std::string> policies;  // policies to measure, including the reference
  std::string schedule;               // a value of `rematch run --schedule`
  int num_repeats = 0;                // repeats of the reference, to measure the noise of its loss
  int num_points = 0;
  std::vector<std::string> arguments;  // arguments of `rematch run`, without the report's name
  ComparisonPrediction predicted;
  std::string path;  // path in the sweep file, such as "groups[0]"; not written to the plan
};

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
  visit({"predicted_time_ns", kLater}, comparison.predicted.time);
}

struct ComparisonPlan {
  std::string id;  // SHA-256 of all other fields
  std::string tool_version;
  std::string device;  // device on which all comparisons run
  std::chrono::milliseconds stale_after = std::chrono::seconds(180);
  std::vector<PlannedComparison> comparisons;
};

// Lists all fields except the id, which is the hash of these fields.
template <RecordOf<ComparisonPlan> Plan, class Visit>
void visit_fields(Plan& plan, Visit visit) {
  visit("tool_version", plan.tool_version);
  visit("device", plan.device);
  visit({"stale_after_ns", kLater}, plan.stale_after);
  visit("comparisons", plan.comparisons);
}

// The JSON includes the id.
Json plan_to_json(const ComparisonPlan& plan);
std::string comparison_plan_id(const ComparisonPlan& plan);
// Reads version 1.0 too, whose times are in milliseconds. Throws FormatError for another major
// version, or if the id does not match the content.
ComparisonPlan comparison_plan_from_json(const Json& json);

}  // namespace rematch
