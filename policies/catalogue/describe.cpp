#include "policies/catalogue/describe.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "policies/base/json.h"
#include "policies/catalogue/plan_facts.h"
#include "policies/trace/hidden_effects_fields.h"

namespace rematch {
namespace {

std::string counted(std::size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string layers_text(const std::vector<int>& layers) {
  std::string text;
  for (const int layer : layers) {
    if (!text.empty()) text += ' ';
    text += std::to_string(layer);
  }
  return text.empty() ? "none" : text;
}

// Formats the checkpointed layers. Bars separate regions that have several layers: "0 1 | 2 3".
std::string checkpointed_text(const LayerFacts& list) {
  std::string text;
  bool bars = false;
  for (const std::vector<int>& layers : list.checkpointed) bars |= layers.size() > 1;
  for (const std::vector<int>& layers : list.checkpointed) {
    if (!text.empty()) text += bars ? " | " : " ";
    text += layers_text(layers);
  }
  return text.empty() ? "none" : text;
}

Json op_json(std::size_t index, const PlannedOp& op) {
  Json json = {{"index", index},
               {"name", op.name},
               {"scope", op.scope},
               {"bytes", op.bytes.count},
               {"treatment", to_string(op.treatment)},
               {"reason", op.reason},
               {"dead_save", op.dead_save}};
  if (op.skipped) json["skipped"] = true;
  return json;
}

Json recomputed_json(std::size_t whole_region, std::size_t on_demand) {
  return {{"whole_region", whole_region}, {"on_demand", on_demand}};
}

Json type_json(const Plan& plan, std::size_t index, const TypeFacts& facts) {
  const RegionType& type = plan.types[index];
  Json regions = Json::array();
  for (int region : facts.regions) {
    regions.push_back({{"first_scope", plan.regions[region].first_scope},
                       {"last_scope", plan.regions[region].last_scope},
                       {"layers", plan.regions[region].layers}});
  }
  Json ops = Json::array();
  for (std::size_t i = 0; i < type.ops.size(); ++i) ops.push_back(op_json(i, type.ops[i]));
  Json steps = Json::array();
  for (const DemandStep& step : type.demand_steps) {
    steps.push_back({{"pack", step.pack}, {"before", step.before}, {"after", step.after}});
  }
  return {{"regions", regions},
          {"early_stop", type.early_stop},
          {"by_demand", type.by_demand},
          {"ops", ops},
          {"kept_bytes", facts.whole_region.kept.count},
          {"dead_bytes", facts.dead.count},
          {"input_bytes", facts.whole_region.inputs.count},
          {"recomputed_ops",
           recomputed_json(facts.whole_region.executed.size(), facts.on_demand.executed.size())},
          {"peak_bytes",
           {{"whole_region", facts.whole_region.peak.count},
            {"on_demand", facts.on_demand.peak.count}}},
          {"whole_on_demand", type.whole_on_demand},
          {"demand_steps", steps}};
}

}  // namespace

std::string describe_layers(const Plan& plan, const Trace& trace) {
  const std::vector<LayerFacts> lists = layer_facts(plan, trace);
  std::string text = plan.policy;
  for (const LayerFacts& list : lists) {
    text += lists.front().list == list.list ? ", " : "; ";
    if (lists.size() > 1) text += list.list + ": ";
    text += counted(static_cast<std::size_t>(list.num_layers), "layer") + ": checkpoints " +
            checkpointed_text(list) + ", keeps " + layers_text(list.kept);
  }
  return text;
}

Json describe_json(const Plan& plan, const Trace& trace, std::string_view note) {
  const PlanFacts facts = plan_facts(plan, trace);
  Json lists = Json::array();
  for (const LayerFacts& list : facts.lists) {
    lists.push_back({{"list", list.list},
                     {"num_layers", list.num_layers},
                     {"checkpoints", list.checkpointed},
                     {"keeps", list.kept}});
  }
  Json types = Json::array();
  for (std::size_t i = 0; i < facts.types.size(); ++i) {
    types.push_back(type_json(plan, i, facts.types[i]));
  }
  Json json = {
      {"schema", "rematch.description/1.0"},
      {"policy", plan.policy},
      {"model", plan.model},
      {"plan_sha256", plan_sha256(plan)},
      {"layers", lists},
      {"types", types},
      {"held_bytes",
       {{"kept", facts.held.kept.count},
        {"inputs", facts.held.inputs.count},
        {"outside_regions", facts.held.unmanaged.count},
        {"total", facts.held.total().count}}},
      {"recomputed_ops", recomputed_json(static_cast<std::size_t>(facts.recomputed_whole_region),
                                         static_cast<std::size_t>(facts.recomputed_on_demand))}};
  write_fields(json, plan.hidden);
  if (!note.empty()) json["note"] = note;
  return json;
}

}  // namespace rematch
