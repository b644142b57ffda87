#include "harness/sweep/comparison_plan.h"

#include <set>
#include <utility>

#include "policies/base/in_quotes.h"
#include "policies/base/json.h"
#include "policies/base/schema.h"
#include "policies/base/sha256.h"

namespace rematch {
namespace {

constexpr std::int64_t kLongestTime = std::int64_t{1} << 40;  // milliseconds: 34 years

Json bytes_or_null(const std::optional<Bytes>& bytes) {
  return bytes ? Json(bytes->count) : Json(nullptr);
}

Json comparison_to_json(const PlannedComparison& comparison) {
  Json dimensions = Json::object();
  for (const auto& [name, size] : comparison.spec.dimensions) dimensions[name] = size;
  const ComparisonPrediction& predicted = comparison.predicted;
  return {{"id", comparison.id},
          {"model", comparison.spec.preset},
          {"dimensions", std::move(dimensions)},
          {"dtype", comparison.spec.dtype},
          {"seed", comparison.seed},
          {"policies", comparison.policies},
          {"schedule", comparison.schedule},
          {"repetitions", comparison.num_repeats},
          {"num_points", comparison.num_points},
          {"arguments", comparison.arguments},
          {"least_predicted_peak_bytes", bytes_or_null(predicted.least_peak)},
          {"most_predicted_peak_bytes", bytes_or_null(predicted.most_peak)},
          {"predicted_time_ms", predicted.time ? Json(predicted.time->count()) : Json(nullptr)}};
}

Json content_of(const ComparisonPlan& plan) {
  Json comparisons = Json::array();
  for (const PlannedComparison& comparison : plan.comparisons) {
    comparisons.push_back(comparison_to_json(comparison));
  }
  return {{"schema", schema_name(kSweepPlanSchema)},
          {"tool_version", plan.tool_version},
          {"device", plan.device},
          {"stale_after_ms", plan.stale_after.count()},
          {"comparisons", std::move(comparisons)}};
}

std::string hash_of(const Json& content) { return sha256_hex(content.dump()); }

std::optional<Bytes> bytes_in(const JsonField& field) {
  if (field.is_null()) return std::nullopt;
  return Bytes{field.count()};
}

PlannedComparison comparison_from_json(const JsonField& field) {
  PlannedComparison comparison;
  comparison.id = field.at("id").string();
  const bool is_name = !comparison.id.empty() &&
                       comparison.id.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!is_name) field.at("id").fail("is no id of a comparison: digits and letters a to f");
  comparison.spec.preset = field.at("model").string();
  for (const auto& [name, size] : field.at("dimensions").members()) {
    comparison.spec.dimensions[*name] = size.integer();
  }
  comparison.spec.dtype = field.at("dtype").string();
  comparison.seed = static_cast<std::uint64_t>(field.at("seed").count());
  comparison.policies = field.at("policies").strings();
  comparison.schedule = field.at("schedule").string();
  comparison.num_repeats = field.at("repetitions").integer32(0);
  comparison.num_points = field.at("num_points").integer32(1);
  comparison.arguments = field.at("arguments").strings();
  comparison.predicted.least_peak = bytes_in(field.at("least_predicted_peak_bytes"));
  comparison.predicted.most_peak = bytes_in(field.at("most_predicted_peak_bytes"));
  if (!field.at("predicted_time_ms").is_null()) {
    comparison.predicted.time =
        std::chrono::milliseconds(field.at("predicted_time_ms").integer(0, kLongestTime));
  }
  return comparison;
}

}  // namespace

Json plan_to_json(const ComparisonPlan& plan) {
  Json json = content_of(plan);
  json["id"] = hash_of(json);
  return json;
}

std::string comparison_plan_id(const ComparisonPlan& plan) { return hash_of(content_of(plan)); }

ComparisonPlan comparison_plan_from_json(const Json& json) {
  require_schema(json, kSweepPlanSchema.kind);
  const JsonField document(json);
  ComparisonPlan plan;
  plan.id = document.at("id").string();
  Json content = json;
  content.erase("id");
  if (plan.id != hash_of(content)) {
    document.at("id").fail(
        "is not the hash of the rest: the plan was changed after it was made; "
        "make it again with `rematch sweep plan`");
  }
  plan.tool_version = document.at("tool_version").string();
  plan.device = document.at("device").string();
  plan.stale_after =
      std::chrono::milliseconds(document.at("stale_after_ms").integer(1, kLongestTime));
  std::set<std::string> ids;
  for (const JsonField& field : document.at("comparisons").elements()) {
    plan.comparisons.push_back(comparison_from_json(field));
    if (!ids.insert(plan.comparisons.back().id).second) field.at("id").fail("appears twice");
  }
  return plan;
}

}  // namespace rematch
