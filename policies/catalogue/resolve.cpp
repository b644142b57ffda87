#include "policies/catalogue/resolve.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/place_regions.h"
#include "policies/catalogue/region_types.h"
#include "policies/catalogue/settle_stores.h"
#include "policies/catalogue/systems.h"
#include "policies/catalogue/treat_ops.h"
#include "policies/catalogue/warnings.h"
#include "policies/predict/region/late_copies.h"

namespace rematch {
namespace {

// Makes the plan without the hash of its trace.
Plan make_plan(const Policy& policy, const Trace& trace, const TraceIndex& index,
               const OpTreater& treater, const std::vector<PlacedRegion>& regions) {
  Plan plan;
  plan.policy = policy.name;
  plan.model = trace.model;
  plan.dimensions = trace.dimensions;
  plan.dtype = trace.dtype;
  plan.hidden = trace.hidden;
  // Some blocks are regions only because they gather parameters. In these blocks, every useful
  // result is kept, except the results of the gather and its views.
  Policy rest;
  rest.inverse = true;
  const OpTreater rest_treater(rest, trace);
  RegionTypeMaker types(policy, index, treater);
  RegionTypeMaker rest_types(rest, index, rest_treater);
  std::map<OpId, std::pair<PlacedRegion, RegionTypeMaker*>> in_forward_order;
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
  settle_stores(policy, trace, index, ranges, made);
  for (std::size_t region = 0; region < made.size(); ++region) {
    plan.regions[region].type = add_once(plan.types, std::move(made[region]));
  }
  plan.watches_writes = has_late_copies(trace, ranges);
  return plan;
}

std::optional<Rejected> check_effect(const Policy& policy, const Plan& plan,
                                     const Resolver& resolver, const Trace& trace) {
  if (const auto store = store_asked_for(policy); store && moved_bytes(plan, trace).count == 0) {
    return Rejected{
        policy.name + " " + traits_of(*store).verb + " nothing of " + trace.model + ": " +
        explain_empty_move(policy, *store, plan) +
        "; save these tensors instead, or pass --allow-no-effect to use the policy anyway"};
  }
  if (policy.no_effect_is_intended) return std::nullopt;
  const std::string advice =
      "; use that policy instead, or pass --allow-no-effect to use this policy anyway";
  const std::string_view same_as = resolver.same_as(plan);
  if (same_as == kNonePolicy) {
    return Rejected{policy.name + " checkpoints nothing of " + trace.model +
                    ": the policy is the same as none" + advice};
  }
  if (same_as == kFullPolicy) {
    return Rejected{policy.name + " recomputes every block of " + trace.model +
                    " completely: the policy is the same as full" + advice};
  }
  return std::nullopt;
}

}  // namespace

Resolver::Resolver(const Trace& trace)
    : trace_(trace), index_(trace), trace_sha256_(rematch::trace_sha256(trace)) {}

// If the policy is a system's mode with a known pitfall, an error includes the pitfall's text,
// which often names the mode that the user meant.
std::variant<Plan, Rejected> Resolver::resolve(const Policy& policy, NoEffect no_effect) const {
  auto plan = try_resolve(policy, no_effect);
  auto* rejected = std::get_if<Rejected>(&plan);
  if (const std::string_view pitfall = pitfall_of(policy.name);
      rejected != nullptr && !pitfall.empty()) {
    rejected->message.append("; ").append(pitfall);
  }
  return plan;
}

std::variant<Plan, Rejected> Resolver::try_resolve(const Policy& policy, NoEffect no_effect) const {
  const auto placed = place_regions(policy, trace_);
  if (const auto* rejected = std::get_if<Rejected>(&placed)) return *rejected;
  const auto& regions = std::get<std::vector<PlacedRegion>>(placed);
  const OpTreater treater(policy, trace_);
  std::vector<OpRange> ranges;
  for (const PlacedRegion& region : regions) ranges.push_back(region.range);
  if (auto rejected = treater.check_nesting(ranges)) return *std::move(rejected);
  if (auto rejected = treater.check_matches(ranges)) {
    // The user named modules, not the ops that the catalogue lists for them, so the message names
    // modules.
    return Rejected{missing_modules(policy, trace_, ranges).value_or(rejected->message)};
  }
  Plan plan = make_plan(policy, trace_, index_, treater, regions);
  plan.trace_sha256 = trace_sha256_;
  if (no_effect == NoEffect::kReject) {
    if (auto rejected = check_effect(policy, plan, *this, trace_)) return *rejected;
  }
  return plan;
}

std::string_view Resolver::same_as(const Plan& plan) const {
  if (!extremes_) {
    const auto hash_of = [this](const Policy& policy) {
      const auto extreme = try_resolve(policy, NoEffect::kAllow);
      return std::holds_alternative<Plan>(extreme) ? plan_sha256(std::get<Plan>(extreme)) : "";
    };
    extremes_ = {hash_of(none_policy()), hash_of(full_policy())};
  }
  const std::string hash = plan_sha256(plan);
  if (hash == extremes_->full) return kFullPolicy;
  if (hash == extremes_->none) return kNonePolicy;
  return "";
}

std::variant<Plan, Rejected> resolve(const Policy& policy, const Trace& trace, NoEffect no_effect) {
  return Resolver(trace).resolve(policy, no_effect);
}

std::optional<Plan> plan_if_possible(std::string_view spelling, const Resolver& resolver) {
  const auto policy = parse_policy(spelling);
  if (!std::holds_alternative<Policy>(policy)) return std::nullopt;
  auto plan = resolver.resolve(std::get<Policy>(policy), NoEffect::kAllow);
  if (auto* resolved = std::get_if<Plan>(&plan)) return std::move(*resolved);
  return std::nullopt;
}

Plan resolve_none(const Trace& trace) {
  return std::get<Plan>(resolve(none_policy(), trace, NoEffect::kAllow));
}

}  // namespace rematch
