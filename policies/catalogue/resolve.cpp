#include "policies/catalogue/resolve.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/place_regions.h"
#include "policies/catalogue/settle_offloads.h"
#include "policies/catalogue/treat_ops.h"
#include "policies/catalogue/warnings.h"
#include "policies/predict/region/order.h"
#include "policies/predict/region/region.h"

namespace rematch {
namespace {

// A save is dead if no value of it is saved for backward, nor read by anything that must be
// recomputed for what is.
void mark_dead_saves(const RegionGraph& graph, std::vector<PlannedOp>& ops) {
  const std::vector<bool> kept = kept_values(graph, ops);
  std::vector<RegionUse> roots;
  std::vector<bool> wanted(graph.values.size(), false);
  for (const RegionSlot& slot : graph.slots) {
    if (slot.is_dropped) continue;
    roots.push_back(slot.use);
    wanted[slot.use.value] = true;
  }
  const std::vector<bool> executed = closure_of(graph, kept, roots);
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    if (!executed[i]) continue;
    for (const RegionUse& read : graph.ops[i].reads) wanted[read.value] = true;
  }
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const std::vector<int>& outputs = graph.ops[i].outputs;
    ops[i].dead_save =
        ops[i].treatment != Treatment::kRecompute &&
        std::none_of(outputs.begin(), outputs.end(), [&](int v) { return kept[v] && wanted[v]; });
  }
}

// An inverse policy keeps all that is of use; without it autograd would not hold the rest either.
void drop_dead_saves(std::vector<PlannedOp>& ops) {
  for (PlannedOp& op : ops) {
    if (!op.dead_save) continue;
    op.dead_save = false;
    op.treatment = Treatment::kRecompute;
    op.reason = "nothing reads it: neither held nor run again";
  }
}

// Nor is it worth a copy.
void drop_dead_offloads(std::vector<PlannedOp>& ops) {
  for (PlannedOp& op : ops) {
    if (!op.dead_save || op.treatment != Treatment::kOffload) continue;
    op.dead_save = false;
    op.treatment = Treatment::kRecompute;
    op.reason += ", but nothing reads it";
  }
}

// A result that the region overwrites in place later cannot be kept, so its op runs again.
void recompute_what_is_overwritten(const RegionGraph& graph, std::vector<PlannedOp>& ops) {
  const std::vector<bool> kept = kept_values(graph, ops);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].treatment == Treatment::kRecompute) continue;
    const std::vector<int>& outputs = graph.ops[i].outputs;
    if (std::any_of(outputs.begin(), outputs.end(), [&](int value) { return kept[value]; }))
      continue;
    ops[i].treatment = Treatment::kRecompute;
    ops[i].reason += ", but is written in place later";
  }
}

// Regions that behave alike share one order, so it is chosen once.
class TypeMaker {
 public:
  TypeMaker(const Policy& policy, const TraceIndex& index, const OpTreater& treater)
      : policy_(policy), index_(index), treater_(treater) {}

  RegionType make(const PlacedRegion& region) {
    RegionGraph graph = index_.graph(region.range);
    RegionType type;
    type.ops = treater_.treat(region);
    type.early_stop = policy_.early_stop;
    // A whole-region replay would also run the ops that are recomputed because nothing reads them.
    type.by_demand = policy_.inverse;
    recompute_what_is_overwritten(graph, type.ops);
    mark_dead_saves(graph, type.ops);
    drop_dead_offloads(type.ops);
    if (policy_.inverse) drop_dead_saves(type.ops);
    for (const Known& known : known_) {
      if (known.type.ops == type.ops && same_behaviour(known.graph, graph)) return known.type;
    }
    choose_order(graph, type);
    known_.push_back({std::move(graph), type});
    return type;
  }

 private:
  struct Known {
    RegionGraph graph;
    RegionType type;
  };
  const Policy& policy_;
  const TraceIndex& index_;
  const OpTreater& treater_;
  std::vector<Known> known_;
};

// Without the hash of its trace.
Plan make_plan(const Policy& policy, const Trace& trace, const TraceIndex& index,
               const OpTreater& treater, const std::vector<PlacedRegion>& regions) {
  Plan plan;
  plan.policy = policy.name;
  plan.model = trace.model;
  plan.dimensions = trace.dimensions;
  plan.dtype = trace.dtype;
  // Of blocks that only gather, all that is of use is kept but the gather and its views.
  Policy rest;
  rest.inverse = true;
  const OpTreater rest_treater(rest, trace);
  TypeMaker types(policy, index, treater);
  TypeMaker rest_types(rest, index, rest_treater);
  std::map<OpId, std::pair<PlacedRegion, TypeMaker*>> in_forward_order;
  for (const PlacedRegion& region : regions)
    in_forward_order[region.range.first] = {region, &types};
  for (const PlacedRegion& region : blocks_that_only_gather(policy, trace, regions)) {
    in_forward_order[region.range.first] = {region, &rest_types};
  }
  std::vector<OpRange> ranges;
  std::vector<RegionType> made;
  for (const auto& [first_op, placed] : in_forward_order) {
    plan.regions.push_back(placed.first.planned);
    ranges.push_back(placed.first.range);
    made.push_back(placed.second->make(placed.first));
  }
  settle_offloads(policy, trace, index, ranges, made);
  for (std::size_t region = 0; region < made.size(); ++region) {
    plan.regions[region].type = add_once(plan.types, std::move(made[region]));
  }
  return plan;
}

// The same regions as full's, and the same treatments: reasons are for people.
bool is_full(const Plan& plan, const std::vector<PlacedRegion>& placed, const Trace& trace) {
  const Policy full;  // every block a region, nothing saved
  const auto all = place_regions(full, trace);
  const auto* blocks = std::get_if<std::vector<PlacedRegion>>(&all);
  if (blocks == nullptr || blocks->size() != placed.size()) return false;
  const OpTreater treater(full, trace);
  if (std::any_of(plan.types.begin(), plan.types.end(), offloads_anything)) return false;
  for (std::size_t i = 0; i < placed.size(); ++i) {
    const RegionType& type = plan.types[plan.regions[i].type];
    if (placed[i].range != (*blocks)[i].range || !type.early_stop) return false;
    const std::vector<PlannedOp> ops = treater.treat(placed[i]);
    if (!std::equal(
            ops.begin(), ops.end(), type.ops.begin(), type.ops.end(),
            [](const PlannedOp& a, const PlannedOp& b) { return a.treatment == b.treatment; })) {
      return false;
    }
  }
  return true;
}

std::optional<Rejected> check_effect(const Policy& policy, const Plan& plan,
                                     const std::vector<PlacedRegion>& placed, const Trace& trace) {
  if (asks_to_offload(policy) && offloaded_bytes(plan, trace).count == 0) {
    return Rejected{policy.name + " offloads nothing of " + trace.model + ": " +
                    why_nothing_is_offloaded(policy, plan) +
                    "; save it instead, or pass --allow-no-effect to keep it"};
  }
  if (policy.no_effect_is_intended) return std::nullopt;
  const std::string advice = "; write that instead, or pass --allow-no-effect to keep it";
  if (placed.empty()) {
    return Rejected{policy.name + " checkpoints nothing of " + trace.model +
                    ": it is the same as none" + advice};
  }
  if (is_full(plan, placed, trace)) {
    return Rejected{policy.name + " recomputes every block of " + trace.model +
                    " whole: it is the same as full" + advice};
  }
  return std::nullopt;
}

}  // namespace

Resolver::Resolver(const Trace& trace)
    : trace_(trace), index_(trace), trace_sha256_(rematch::trace_sha256(trace)) {}

std::variant<Plan, Rejected> Resolver::resolve(const Policy& policy, NoEffect no_effect) const {
  const auto placed = place_regions(policy, trace_);
  if (const auto* rejected = std::get_if<Rejected>(&placed)) return *rejected;
  const auto& regions = std::get<std::vector<PlacedRegion>>(placed);
  const OpTreater treater(policy, trace_);
  std::vector<OpRange> ranges;
  for (const PlacedRegion& region : regions) ranges.push_back(region.range);
  if (auto rejected = treater.check_matches(ranges)) {
    // The user named modules, not the ops that the catalogue lists for them.
    return Rejected{missing_modules(policy, trace_, ranges).value_or(rejected->message)};
  }
  Plan plan = make_plan(policy, trace_, index_, treater, regions);
  plan.trace_sha256 = trace_sha256_;
  if (no_effect == NoEffect::kReject) {
    if (auto rejected = check_effect(policy, plan, regions, trace_)) return *rejected;
  }
  return plan;
}

std::variant<Plan, Rejected> resolve(const Policy& policy, const Trace& trace, NoEffect no_effect) {
  return Resolver(trace).resolve(policy, no_effect);
}

Plan resolve_none(const Trace& trace) {
  return std::get<Plan>(resolve(std::get<Policy>(parse_policy("none")), trace, NoEffect::kAllow));
}

}  // namespace rematch
