#include "harness/sweep/comparison_plan.h"

#include <set>
#include <utility>

#include "policies/base/field_value.h"
#include "policies/base/hashing.h"
#include "policies/base/json.h"

namespace rematch {
namespace {

constexpr std::int64_t kMostMilliseconds = std::int64_t{1} << 40;  // about 34 years

Json content_of(const ComparisonPlan& plan) { return document_of(kSweepPlanSchema, plan); }

std::string hash_of(const Json& content) { return sha256_hex(content.dump()); }

void require_id(const JsonField& id, std::set<std::string>& ids) {
  const std::string& text = id.string();
  const bool is_name =
      !text.empty() && text.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!is_name) id.fail("is not a comparison id; an id contains only the characters 0-9 and a-f");
  if (!ids.insert(text).second) id.fail("appears twice");
}

// Converts a time of a plan of version 1.0 from milliseconds to nanoseconds.
void convert_time(Json& object, const std::string& name) {
  const auto former = object.find(name + "_ms");
  if (former == object.end()) return;
  Json time;
  if (!former->is_null()) {
    const auto value = JsonField(object).at(name + "_ms").integer(0, kMostMilliseconds);
    time = to_value(std::chrono::milliseconds(value));
  }
  object[name + "_ns"] = std::move(time);
  object.erase(name + "_ms");
}

// Returns the plan with the keys of the current version.
Json with_current_keys(Json plan) {
  convert_time(plan, "stale_after");
  const auto comparisons = plan.find("comparisons");
  if (comparisons == plan.end() || !comparisons->is_array()) return plan;
  for (Json& comparison : *comparisons) {
    if (comparison.is_object()) convert_time(comparison, "predicted_time");
  }
  return plan;
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
  const Json current = with_current_keys(json);
  const JsonField document(current);
  ComparisonPlan plan;
  plan.id = document.at("id").string();
  Json content = json;
  content.erase("id");
  if (plan.id != hash_of(content)) {
    document.at("id").fail(
        "does not match the plan: the plan was changed after it was made; make the plan again with "
        "`rematch sweep plan`");
  }
  read_fields(document, plan);
  document.at("stale_after_ns").integer(1'000'000);
  std::set<std::string> ids;
  for (const JsonField& comparison : document.at("comparisons").elements()) {
    require_id(comparison.at("id"), ids);
    comparison.at("num_points").integer(1);
    comparison.at("predicted_time_ns");  // required, but null if there was no trace
  }
  return plan;
}

}  // namespace rematch
