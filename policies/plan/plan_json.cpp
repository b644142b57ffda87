#include "policies/plan/plan_json.h"

#include <algorithm>
#include <array>

#include "policies/base/json.h"
#include "policies/base/record_fields.h"
#include "policies/base/text.h"

namespace rematch {
namespace {

Json op_to_json(const PlannedOp& op) {
  Json json = {{"name", op.name},
               {"scope", op.scope},
               {"bytes", op.bytes.count},
               {"treatment", to_string(op.treatment)},
               {"reason", op.reason}};
  if (op.dead_save) json["dead_save"] = true;
  return json;
}

Json step_to_json(const DemandStep& step) {
  return {{"pack", step.pack}, {"before", step.before}, {"after", step.after}};
}

Json type_to_json(const RegionType& type) {
  Json json = {{"early_stop", type.early_stop}, {"whole_on_demand", type.whole_on_demand}};
  if (type.by_demand) json["by_demand"] = true;
  for (const RegionInput& input : type.offload_inputs) {
    json["offload_inputs"].push_back({{"op", input.op}, {"argument", input.argument}});
  }
  json["demand_steps"] = Json::array();
  for (const DemandStep& step : type.demand_steps)
    json["demand_steps"].push_back(step_to_json(step));
  json["ops"] = Json::array();
  for (const PlannedOp& op : type.ops) json["ops"].push_back(op_to_json(op));
  return json;
}

Json region_to_json(const PlannedRegion& region) {
  return {{"first_scope", region.first_scope},
          {"last_scope", region.last_scope},
          {"type", region.type},
          {"layers", region.layers}};
}

// Which layers each type governs, one entry per type: "0-3, 6".
Json layers_for_people(const Plan& plan) {
  Json rows = Json::array();
  for (std::size_t type = 0; type < plan.types.size(); ++type) {
    std::vector<int> layers;
    int num_regions = 0;
    for (const PlannedRegion& region : plan.regions) {
      if (region.type != static_cast<int>(type)) continue;
      ++num_regions;
      for (const int layer : region.layers) {
        if (layers.empty() || layers.back() != layer) layers.push_back(layer);
      }
    }
    rows.push_back({{"type", type}, {"layers", layer_ranges(layers)}, {"regions", num_regions}});
  }
  return rows;
}

Treatment treatment_from_json(const JsonField& field) {
  const std::string& text = field.string();
  if (const auto treatment = treatment_from_string(text)) return *treatment;
  field.fail("unknown treatment '" + text + "'" +
             did_you_mean(text, std::vector<std::string_view>{"save", "recompute", "offload"}));
}

PlannedOp op_from_json(const JsonField& field) {
  PlannedOp op;
  op.name = field.at("name").string();
  op.scope = field.at("scope").string();
  op.bytes = {field.at("bytes").count()};
  op.treatment = treatment_from_json(field.at("treatment"));
  op.reason = field.at("reason").string();
  if (const auto dead = field.find("dead_save")) op.dead_save = dead->boolean();
  return op;
}

std::vector<int> indices_from_json(const JsonField& field) {
  std::vector<int> indices;
  for (const JsonField& element : field.elements()) indices.push_back(element.integer32(0));
  return indices;
}

DemandStep step_from_json(const JsonField& field) {
  return {field.at("pack").integer32(0), indices_from_json(field.at("before")),
          indices_from_json(field.at("after"))};
}

RegionInput input_from_json(const JsonField& field, std::size_t num_ops) {
  const JsonField op = field.at("op");
  if (num_ops == 0) op.fail("refers to an op, but \"ops\" is empty");
  return {op.integer32(0, static_cast<std::int32_t>(num_ops) - 1),
          field.at("argument").integer32(0)};
}

RegionType type_from_json(const JsonField& field) {
  RegionType type;
  type.early_stop = field.at("early_stop").boolean();
  type.whole_on_demand = field.at("whole_on_demand").boolean();
  if (const auto by_demand = field.find("by_demand")) type.by_demand = by_demand->boolean();
  for (const JsonField& step : field.at("demand_steps").elements()) {
    type.demand_steps.push_back(step_from_json(step));
  }
  for (const JsonField& op : field.at("ops").elements()) type.ops.push_back(op_from_json(op));
  if (const auto inputs = field.find("offload_inputs")) {
    for (const JsonField& input : inputs->elements()) {
      type.offload_inputs.push_back(input_from_json(input, type.ops.size()));
    }
  }
  return type;
}

PlannedRegion region_from_json(const JsonField& field, std::size_t num_types) {
  PlannedRegion region;
  region.first_scope = field.at("first_scope").string();
  region.last_scope = field.at("last_scope").string();
  const JsonField type = field.at("type");
  if (num_types == 0) type.fail("refers to a type, but \"types\" is empty");
  region.type = type.integer32(0, static_cast<std::int32_t>(num_types) - 1);
  region.layers = indices_from_json(field.at("layers"));
  return region;
}

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

}  // namespace

Json plan_to_json(const Plan& plan) {
  Json json = {{"schema", schema_name(kPlanSchema)},
               {"policy", plan.policy},
               {"model", plan.model},
               {"dimensions", plan.dimensions},
               {"dtype", plan.dtype},
               {"trace_sha256", plan.trace_sha256},
               {"layers", layers_for_people(plan)}};
  json["types"] = Json::array();
  for (const RegionType& type : plan.types) json["types"].push_back(type_to_json(type));
  json["regions"] = Json::array();
  for (const PlannedRegion& region : plan.regions)
    json["regions"].push_back(region_to_json(region));
  return json;
}

Plan plan_from_json(const Json& json) {
  require_schema(json, kPlanSchema.kind);
  const JsonField root(json);
  Plan plan;
  plan.policy = root.at("policy").string();
  plan.model = root.at("model").string();
  const JsonField dimensions = root.at("dimensions");
  dimensions.require_object();
  for (const auto& [name, value] : dimensions.json().items()) {
    plan.dimensions[name] = dimensions.at(name).integer(-kLargestInteger, kLargestInteger);
  }
  plan.dtype = root.at("dtype").string();
  plan.trace_sha256 = root.at("trace_sha256").string();
  for (const JsonField& type : root.at("types").elements()) {
    plan.types.push_back(type_from_json(type));
  }
  for (const JsonField& region : root.at("regions").elements()) {
    plan.regions.push_back(region_from_json(region, plan.types.size()));
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
