// Lists the fields of a plan's file in order. A new field needs a member in plan.h, a line here,
// and an entry in reports/schema/plan.schema.json. Private to this folder and to the test that
// compares the list with the schema.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "policies/base/field_value.h"
#include "policies/plan/plan.h"
#include "policies/trace/hidden_effects_fields.h"

namespace rematch {

inline Json to_value(Treatment treatment) { return to_string(treatment); }
void read_value(const JsonField& field, Treatment& treatment);
void read_value(const JsonField& field, RegionType& type);
void read_value(const JsonField& field, ShapePlan& shape);

template <RecordOf<PlannedOp> Op, class Visit>
void visit_fields(Op& op, Visit visit) {
  visit("name", op.name);
  visit("scope", op.scope);
  visit("bytes", op.bytes);
  visit("treatment", op.treatment);
  visit("reason", op.reason);
  visit({"dead_save", kLater | kOmitIfEmpty}, op.dead_save);
  visit({"skipped", kLater | kOmitIfEmpty}, op.skipped);
}

template <RecordOf<DemandStep> Step, class Visit>
void visit_fields(Step& step, Visit visit) {
  visit("pack", step.pack);
  visit("before", step.before);
  visit("after", step.after);
}

template <RecordOf<RegionInput> Input, class Visit>
void visit_fields(Input& input, Visit visit) {
  visit("op", input.op);
  visit("argument", input.argument);
}

template <RecordOf<RegionType> Type, class Visit>
void visit_fields(Type& type, Visit visit) {
  visit("early_stop", type.early_stop);
  visit("whole_on_demand", type.whole_on_demand);
  visit({"by_demand", kLater | kOmitIfEmpty}, type.by_demand);
  visit("demand_steps", type.demand_steps);
  visit("ops", type.ops);
  for (const StoreTraits& store : kStores) {
    if (store.inputs_key == nullptr) continue;
    visit({store.inputs_key, kLater | kOmitIfEmpty}, type.stored_inputs[store.store]);
  }
}

template <RecordOf<PlannedRegion> Region, class Visit>
void visit_fields(Region& region, Visit visit) {
  visit("first_scope", region.first_scope);
  visit("last_scope", region.last_scope);
  visit("type", region.type);
  visit("layers", region.layers);
}

// For people; readers ignore it. For each region type: its layers as text ("0-3, 6"), and its
// number of regions.
struct LayersOfType {
  int type = 0;
  std::string layers;
  int num_regions = 0;
};
std::vector<LayersOfType> layers_by_type(const ShapePlan& shape);

template <RecordOf<LayersOfType> Layers, class Visit>
void visit_fields(Layers& layers, Visit visit) {
  visit("type", layers.type);
  visit("layers", layers.layers);
  visit("regions", layers.num_regions);
}

template <RecordOf<ShapePlan> Shape, class Visit>
void visit_fields(Shape& shape, Visit visit) {
  visit("policy", shape.policy);
  visit("model", shape.model);
  visit("dimensions", shape.dimensions);
  visit("dtype", shape.dtype);
  visit("trace_sha256", shape.trace_sha256);
  visit({"layers", kLater}, [&] { return layers_by_type(shape); });
  visit("types", shape.types);
  visit("regions", shape.regions);
}

template <RecordOf<Plan> APlan, class Visit>
void visit_fields(APlan& plan, Visit visit) {
  using Shape = std::conditional_t<std::is_const_v<APlan>, const ShapePlan, ShapePlan>;
  visit_fields(static_cast<Shape&>(plan), visit);
  visit({"other_shapes", kLater | kOmitIfEmpty}, plan.other_shapes);
  visit({"watches_writes", kLater | kOmitIfEmpty}, plan.watches_writes);
  visit_fields(plan.hidden, visit);
}

}  // namespace rematch
