#include "policies/catalogue/catalogue.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "policies/base/json.h"
#include "policies/base/text.h"
#include "policies/catalogue/call.h"
#include "policies/catalogue/families/families.h"
#include "policies/catalogue/plan_facts.h"
#include "policies/catalogue/systems.h"
#include "policies/plan/policy_json.h"
#include "policies/trace/hidden_effects_fields.h"

namespace rematch {
namespace {

std::vector<CatalogueEntry> all_families() {
  std::vector<CatalogueEntry> all;
  append(all, layer_policies());
  append(all, save_list_policies());
  append(all, alternating_policies());
  append(all, region_policies());
  append(all, module_policies());
  append(all, maxtext_policies());
  append(all, collective_policies());
  append(all, offloading_policies());
  return all;
}

// The lists of a policy file are the user's own, so every entry is expected to match something.
void expect_all(Policy& policy) {
  std::vector<Selector> own = policy.save;
  append(own, policy.offload);
  append(own, policy.exclude);
  append(own, policy.recompute);
  if (policy.alternate) append(own, policy.alternate->exclude);
  for (const Selector& selector : own) policy.expectations.push_back({.ops = {selector}});
  for (const std::string& pattern : policy.regions.patterns) {
    policy.expectations.push_back({.scopes = {pattern}});
  }
}

std::string unknown(std::string_view text, std::string_view name) {
  std::vector<std::string_view> names;
  for (const CatalogueEntry& entry : catalogue()) names.push_back(entry.name);
  // If no catalogue name is similar, the user may have misspelled the name of a system's mode.
  if (const auto spelling = nearest_spelling(text); spelling && !nearest_name(name, names)) {
    return "unknown policy " + in_quotes(text) + "; did you mean '" + *spelling + "'?";
  }
  return "unknown policy " + in_quotes(name) + did_you_mean(name, names) +
         " `rematch list` and `rematch list --systems` show all; a policy file ends in .json";
}

// Rejects a file that has the name of a different policy. Reports show a policy only by its name,
// and a run finds its reference by it.
std::variant<Policy, Rejected> policy_of_file(const std::string& path) {
  auto read = read_policy_file(path);
  auto* policy = std::get_if<Policy>(&read);
  if (policy == nullptr) return read;
  auto known = policy->name.ends_with(".json") ? Rejected() : parse_policy(policy->name);
  auto* namesake = std::get_if<Policy>(&known);
  if (namesake == nullptr) {
    expect_all(*policy);
    return read;
  }
  namesake->name = policy->name;  // a file may use another spelling than the canonical one
  if (policy_to_json(*namesake) == policy_to_json(*policy)) return known;
  return Rejected{path + ": name: " + in_quotes(policy->name) +
                  " is another policy of `rematch list`; give this one another name"};
}

}  // namespace

const std::vector<CatalogueEntry>& catalogue() {
  static const std::vector<CatalogueEntry> entries = all_families();
  return entries;
}

std::variant<Policy, Rejected> parse_policy(std::string_view text) {
  text = trimmed(text);
  if (text.empty()) return Rejected{"a policy is empty; `rematch list` shows all"};
  if (text.ends_with(".json")) return policy_of_file(std::string(text));
  const std::optional<Call> call = parse_call(text);
  if (!call) {
    return Rejected{"policy " + in_quotes(text) +
                    " is not of the form name or name(arguments), for example nth_last(2)"};
  }
  for (const CatalogueEntry& entry : catalogue()) {
    if (entry.name == call->name) return make_policy(entry, call->arguments.value_or(""));
  }
  if (auto parsed = parse_system_spelling(text, *call)) return *std::move(parsed);
  return Rejected{unknown(text, call->name)};
}

std::variant<std::vector<Policy>, Rejected> parse_policies(std::string_view text) {
  const auto parts = split_at_commas(text);
  if (!parts) return Rejected{"the brackets of " + in_quotes(text) + " are unbalanced"};
  std::vector<Policy> policies;
  for (std::string_view part : *parts) {
    if (part.empty()) {
      return Rejected{"the list of policies " + in_quotes(text) +
                      " has an empty entry; write names with one comma between them"};
    }
    auto parsed = parse_policy(part);
    if (const auto* rejected = std::get_if<Rejected>(&parsed)) return *rejected;
    Policy& policy = std::get<Policy>(parsed);
    if (std::any_of(policies.begin(), policies.end(),
                    [&](const Policy& other) { return other.name == policy.name; })) {
      return Rejected{"policy " + policy.name + " is listed twice; list it once"};
    }
    policies.push_back(std::move(policy));
  }
  return policies;
}

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
  return {{"index", index},
          {"name", op.name},
          {"scope", op.scope},
          {"bytes", op.bytes.count},
          {"treatment", to_string(op.treatment)},
          {"reason", op.reason},
          {"dead_save", op.dead_save}};
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
