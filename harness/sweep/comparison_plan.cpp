#include "harness/sweep/comparison_plan.h"

#include <set>

#include "policies/base/field_value.h"
#include "policies/base/hashing.h"
#include "policies/base/json.h"

namespace rematch {
namespace {

Json content_of(const ComparisonPlan& plan) { return document_of(kSweepPlanSchema, plan); }

std::string hash_of(const Json& content) { return sha256_hex(content.dump()); }

void require_id(const JsonField& id, std::set<std::string>& ids) {
  const std::string& text = id.string();
  const bool is_name =
      !text.empty() && text.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!is_name) id.fail("is not a comparison id; an id has only the characters 0-9 and a-f");
  if (!ids.insert(text).second) id.fail("appears twice");
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
        "does not match the plan: the plan was changed after it was made; make the plan again with "
        "`rematch sweep plan`");
  }
  read_fields(document, plan);
  document.at("stale_after_ms").integer(1);
  std::set<std::string> ids;
  for (const JsonField& comparison : document.at("comparisons").elements()) {
    require_id(comparison.at("id"), ids);
    comparison.at("num_points").integer(1);
  }
  return plan;
}

}  // namespace rematch
