#include "policies/plan/plan_json.h"

#include <algorithm>
#include <array>

#include "policies/base/text.h"
#include "policies/plan/plan_fields.h"

namespace rematch {
namespace {

// The type without what does not change what runs.
RegionType effect_of(RegionType type) {
  for (PlannedOp& op : type.ops) {
    op.reason.clear();
    op.dead_save = false;
  }
  return type;
}

Plan effect_of(const Plan& plan) {
  Plan effect = plan;
  effect.policy.clear();
  effect.types.clear();
  for (PlannedRegion& region : effect.regions) {
    region.layers.clear();
    RegionType type = effect_of(plan.types.at(static_cast<std::size_t>(region.type)));
    const auto known = std::find(effect.types.begin(), effect.types.end(), type);
    region.type = static_cast<int>(known - effect.types.begin());
    if (known == effect.types.end()) effect.types.push_back(std::move(type));
  }
  return effect;
}

void require_index(const JsonField& field, std::size_t size, const char* empty) {
  if (size == 0) field.fail(empty);
  field.integer32(0, static_cast<std::int32_t>(size) - 1);
}

}  // namespace

std::vector<LayersOfType> layers_by_type(const Plan& plan) {
  std::vector<LayersOfType> rows;
  for (int type = 0; type < static_cast<int>(plan.types.size()); ++type) {
    std::vector<int> layers;
    int num_regions = 0;
    for (const PlannedRegion& region : plan.regions) {
      if (region.type != type) continue;
      ++num_regions;
      for (const int layer : region.layers) {
        if (layers.empty() || layers.back() != layer) layers.push_back(layer);
      }
    }
    rows.push_back({type, layer_ranges(layers), num_regions});
  }
  return rows;
}

Json to_value(Treatment treatment) { return to_string(treatment); }

void read_value(const JsonField& field, Treatment& treatment) {
  const std::string& text = field.string();
  const std::optional<Treatment> found = treatment_from_string(text);
  if (!found) {
    field.fail("unknown treatment '" + text + "'" +
               did_you_mean(text, std::vector<std::string_view>{"save", "recompute", "offload"}));
  }
  treatment = *found;
}

void read_value(const JsonField& field, RegionType& type) {
  read_fields(field, type);
  if (type.offload_inputs.empty()) return;
  for (const JsonField& input : field.at("offload_inputs").elements()) {
    require_index(input.at("op"), type.ops.size(), "refers to an op, but \"ops\" is empty");
  }
}

Json plan_to_json(const Plan& plan) {
  Json json = {{"schema", schema_name(kPlanSchema)}};
  write_fields(json, plan);
  return json;
}

Plan plan_from_json(const Json& json) {
  require_schema(json, kPlanSchema.kind);
  const JsonField root(json);
  Plan plan;
  read_fields(root, plan);
  for (const JsonField& region : root.at("regions").elements()) {
    require_index(region.at("type"), plan.types.size(), "refers to a type, but \"types\" is empty");
  }
  return plan;
}

Json to_value(const Plan& plan) { return plan_to_json(plan); }
Json to_value(Schedule schedule) { return to_string(schedule); }

void read_value(const JsonField& field, Plan& plan) { plan = plan_from_json(field.json()); }

void read_value(const JsonField& field, Schedule& schedule) {
  constexpr std::array kAll = {Schedule::kWholeRegion, Schedule::kOnDemand};
  schedule = read_word(field, kAll, "not a schedule");
}

Json plan_effect_json(const Plan& plan) {
  Json json = plan_to_json(effect_of(plan));
  json.erase("layers");
  return json;
}

}  // namespace rematch
