#include "policies/plan/plan.h"

#include <algorithm>

#include "policies/base/hashing.h"
#include "policies/base/id.h"
#include "policies/plan/plan_fields.h"
#include "policies/plan/plan_json.h"
#include "policies/trace/collective.h"

namespace rematch {

std::vector<int> skipped_ops(const RegionType& type) {
  std::vector<int> skipped;
  for (std::size_t op = 0; op < type.ops.size(); ++op) {
    if (type.ops[op].skipped) skipped.push_back(static_cast<int>(op));
  }
  return skipped;
}

std::string layer_ranges(const std::vector<int>& layers) {
  std::string text;
  for (std::size_t first = 0; first < layers.size();) {
    std::size_t last = first;
    while (last + 1 < layers.size() && layers[last + 1] == layers[last] + 1) ++last;
    if (!text.empty()) text += ", ";
    text += std::to_string(layers[first]);
    if (last > first)
      text.append(last == first + 1 ? ", " : "-").append(std::to_string(layers[last]));
    first = last + 1;
  }
  return text;
}

namespace {

bool uses(const RegionType& type, Store store) {
  return !type.stored_inputs[store].empty() ||
         std::any_of(type.ops.begin(), type.ops.end(),
                     [store](const PlannedOp& op) { return op.treatment.kept_in == store; });
}

// Returns the region type with only the fields that change what runs.
RegionType effect_of(RegionType type) {
  for (PlannedOp& op : type.ops) {
    op.reason.clear();
    op.dead_save = false;
  }
  return type;
}

ShapePlan effect_of(const ShapePlan& shape) {
  ShapePlan effect = shape;
  effect.policy.clear();
  effect.types.clear();
  for (PlannedRegion& region : effect.regions) {
    region.layers.clear();
    const RegionType& type = shape.types.at(static_cast<std::size_t>(region.type));
    region.type = add_once(effect.types, effect_of(type));
  }
  return effect;
}

Plan effect_of(const Plan& plan) {
  Plan effect{effect_of(static_cast<const ShapePlan&>(plan)), {}, plan.hidden, plan.watches_writes};
  for (const ShapePlan& shape : plan.other_shapes) {
    effect.other_shapes.push_back(effect_of(shape));
  }
  return effect;
}

void require_index(const JsonField& field, std::size_t size, const char* empty) {
  if (size == 0) field.fail(empty);
  field.integer32(0, static_cast<std::int32_t>(size) - 1);
}

void require_types(const JsonField& field, const ShapePlan& shape) {
  for (const JsonField& region : field.at("regions").elements()) {
    require_index(region.at("type"), shape.types.size(),
                  "refers to a type, but \"types\" is empty");
  }
}

}  // namespace

bool moves_anything(const RegionType& type) {
  return !is_empty(type.stored_inputs) ||
         std::any_of(type.ops.begin(), type.ops.end(),
                     [](const PlannedOp& op) { return op.treatment.is_moved(); });
}

std::optional<std::string> move_words(const RegionType& type) {
  for (const StoreTraits& store : kStores) {
    if (!type.stored_inputs[store.store].empty())
      return std::string("the region keeps its inputs ") + store.place;
  }
  for (const PlannedOp& op : type.ops) {
    if (op.treatment.is_moved()) {
      return std::string("the region ") + traits_of(*op.treatment.kept_in).verb + " " + op.name;
    }
  }
  return std::nullopt;
}

std::string inexact_store(const Plan& plan, std::span<const StoreTraits> stores) {
  for (const StoreTraits& store : stores) {
    if (store.is_exact) continue;
    for (const ShapePlan* shape : shapes_of(plan)) {
      for (const RegionType& type : shape->types) {
        if (uses(type, store.store)) return store.word;
      }
    }
  }
  return "";
}

std::optional<std::string> store_problem(const RegionType& type) {
  for (const PlannedOp& op : type.ops) {
    if (!op.treatment.is_kept()) continue;
    const StoreTraits& store = traits_of(*op.treatment.kept_in);
    if (store.can_hold(op.name)) continue;
    return "op " + op.name + " (scope " + op.scope + ") cannot be kept " + store.place +
           "; write \"save\" for it";
  }
  return std::nullopt;
}

std::vector<const ShapePlan*> shapes_of(const Plan& plan) {
  std::vector<const ShapePlan*> shapes = {&plan};
  for (const ShapePlan& shape : plan.other_shapes) shapes.push_back(&shape);
  return shapes;
}

std::size_t num_types(const Plan& plan) {
  std::size_t count = 0;
  for (const ShapePlan* shape : shapes_of(plan)) count += shape->types.size();
  return count;
}

std::vector<Plan> plans_of_shapes(const Plan& plan) {
  std::vector<Plan> plans;
  for (const ShapePlan* shape : shapes_of(plan))
    plans.push_back(Plan{*shape, {}, plan.hidden, plan.watches_writes});
  return plans;
}

Plan plan_of_trace(const Plan& plan, std::string_view trace_sha256) {
  for (const ShapePlan* shape : shapes_of(plan)) {
    if (shape->trace_sha256 == trace_sha256)
      return Plan{*shape, {}, plan.hidden, plan.watches_writes};
  }
  return Plan{plan, {}, plan.hidden, plan.watches_writes};
}

std::vector<LayersOfType> layers_by_type(const ShapePlan& shape) {
  std::vector<LayersOfType> rows;
  for (int type = 0; type < static_cast<int>(shape.types.size()); ++type) {
    std::vector<int> layers;
    int num_regions = 0;
    for (const PlannedRegion& region : shape.regions) {
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

void read_value(const JsonField& field, Treatment& treatment) {
  const std::optional<Treatment> known = treatment_from_string(field.string());
  if (!known) fail_unknown_word(field, treatment_words());
  treatment = *known;
}

void read_value(const JsonField& field, RegionType& type) {
  read_fields(field, type);
  if (const auto problem = store_problem(type)) field.fail(*problem);
  for (const StoreTraits& store : kStores) {
    if (type.stored_inputs[store.store].empty()) continue;
    for (const JsonField& input : field.at(store.inputs_key).elements()) {
      require_index(input.at("op"), type.ops.size(), "refers to an op, but \"ops\" is empty");
    }
  }
}

void read_value(const JsonField& field, ShapePlan& shape) {
  read_fields(field, shape);
  require_types(field, shape);
}

Json plan_to_json(const Plan& plan) { return document_of(kPlanSchema, plan); }

Plan plan_from_json(const Json& json) {
  require_schema(json, kPlanSchema.kind);
  const JsonField root(json);
  Plan plan;
  read_fields(root, plan);
  plan.hidden = hidden_effects_from_json(json);
  require_types(root, plan);
  return plan;
}

Json to_value(const Plan& plan) { return plan_to_json(plan); }

void read_value(const JsonField& field, Plan& plan) { plan = plan_from_json(field.json()); }

std::string plan_sha256(const Plan& plan) { return canonical_sha256(plan_effect_json(plan)); }

Json plan_effect_json(const Plan& plan) {
  Json json = plan_to_json(effect_of(plan));
  json.erase("layers");
  if (!plan.other_shapes.empty()) {
    for (Json& shape : json["other_shapes"]) shape.erase("layers");
  }
  return json;
}

}  // namespace rematch
