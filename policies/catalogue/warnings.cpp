#include "policies/catalogue/warnings.h"

#include <algorithm>
#include <set>
#include <variant>

#include "models/scope/names.h"
#include "policies/base/text.h"
#include "policies/catalogue/families/families.h"
#include "policies/catalogue/place_regions.h"
#include "policies/catalogue/settle_stores.h"
#include "policies/predict/region/trace_index.h"

namespace rematch {
namespace {

using Ranges = std::vector<OpRange>;

// Returns whether the selector picks an op in at least one of the ranges. Returns true if `ranges`
// is empty, so that a plan without regions gets no warning.
bool picks_in(const Selector& selector, const Trace& trace, const Ranges& ranges) {
  const IdTable<OpId, bool> picked = matches(selector, trace);
  return ranges.empty() || std::any_of(ranges.begin(), ranges.end(), [&](OpRange range) {
           const auto end = picked.begin() + range.end.index;
           return std::find(picked.begin() + range.first.index, end, true) != end;
         });
}

bool any_picks_in(const std::vector<Selector>& selectors, const Trace& trace,
                  const Ranges& ranges) {
  return std::any_of(selectors.begin(), selectors.end(),
                     [&](const Selector& selector) { return picks_in(selector, trace, ranges); });
}

bool has_scopes(const BlockChoice& blocks, const std::vector<std::string>& patterns,
                const Trace& trace) {
  Policy parts;
  parts.blocks = blocks;
  parts.regions = {RegionChoice::Kind::kScopes, 0, patterns, ""};
  return std::holds_alternative<std::vector<PlacedRegion>>(place_regions(parts, trace));
}

// Returns whether the selector may stand for the attention class. See Note [Attention by any name].
bool stands_for_class(const Selector& selector, const Policy& policy) {
  return !policy.exact_names && op_class_of(selector.op) == OpClass::kAttentionForward;
}

bool has_biases(const Trace& trace) {
  return std::any_of(trace.ops.begin(), trace.ops.end(),
                     [](const TracedOp& op) { return op.name == "aten::addmm"; });
}

bool has_experts(const Trace& trace) {
  const std::string ending = "." + std::string(scope_names::kMoe);
  return std::any_of(trace.scopes.begin(), trace.scopes.end(),
                     [&](const TracedScope& scope) { return scope.path.ends_with(ending); });
}

bool concerns(Policy::Concern concern, const Trace& trace) {
  switch (concern) {
    case Policy::Concern::kEveryModel:
      break;
    case Policy::Concern::kDraws:
      return std::any_of(trace.ops.begin(), trace.ops.end(),
                         [](const TracedOp& op) { return op.draws_random; });
    case Policy::Concern::kBiases:
      return has_biases(trace);
    case Policy::Concern::kExperts:
      return has_experts(trace);
    case Policy::Concern::kBiasesOrExperts:
      return has_biases(trace) || has_experts(trace);
  }
  return true;
}

bool is_met(const Policy::Expectation& expected, const Policy& policy, const Trace& trace,
            const Ranges& ranges) {
  if (!concerns(expected.concern, trace)) return true;
  if (!expected.scopes.empty() && has_scopes(policy.blocks, expected.scopes, trace)) return true;
  return std::any_of(expected.ops.begin(), expected.ops.end(), [&](const Selector& selector) {
    return stands_for_class(selector, policy) || picks_in(selector, trace, ranges);
  });
}

std::vector<Policy::Expectation> unmet(const Policy& policy, const Trace& trace,
                                       const Ranges& ranges) {
  std::vector<Policy::Expectation> all;
  std::copy_if(policy.expectations.begin(), policy.expectations.end(), std::back_inserter(all),
               [&](const Policy::Expectation& e) { return !is_met(e, policy, trace, ranges); });
  return all;
}

std::string text_of(const Policy::Expectation& expected) {
  if (!expected.warning.empty()) return expected.warning;
  if (!expected.scopes.empty()) return "no scope in its blocks matches " + joined(expected.scopes);
  return "nothing in its regions matches " + joined(names_of(expected.ops));
}

// Warns if checkpointing the last layer saves nothing: backward starts with this layer and
// immediately needs the values that its region dropped.
void warn_of_last_layer(const Policy& policy, const Plan& plan, const Trace& trace,
                        std::vector<std::string>& warnings) {
  if (policy.regions.kind == RegionChoice::Kind::kRoot || trace.blocks.empty()) return;
  std::set<int> layers;
  std::set<int> checkpointed;
  for (const TracedBlock& block : trace.blocks) layers.insert(block.index);
  for (const PlannedRegion& region : plan.regions) {
    checkpointed.insert(region.layers.begin(), region.layers.end());
  }
  const int last = *layers.rbegin();
  if (checkpointed.size() == layers.size() || !checkpointed.contains(last)) return;
  warnings.push_back(
      policy.name + " checkpoints the last layer, " + std::to_string(last) +
      ", but not all layers. Backward starts with that layer and recomputes it at once, so its "
      "checkpoint saves nothing at the start of backward, where the peak usually is");
}

void warn_of_root(const Policy& policy, std::vector<std::string>& warnings) {
  if (policy.regions.kind != RegionChoice::Kind::kRoot) return;
  warnings.push_back(policy.name +
                     ": the whole model is one region, which is recomputed completely when "
                     "backward starts (whole_region), so the peak is as high as under policy none");
}

// Warns if a policy that keeps every second matching op matches no op. For example, its list may
// contain aten::mm although the model's linears have a bias and are aten::addmm.
void warn_of_empty_alternation(const Policy& policy, const Trace& trace, const Ranges& ranges,
                               std::vector<std::string>& warnings) {
  if (!policy.alternate || any_picks_in(policy.alternate->selectors, trace, ranges)) return;
  std::set<std::string> matmuls;
  for (const OpRange range : ranges) {
    for (const OpId id : range.ids()) {
      if (trace.ops[id].op_class == OpClass::kMatmul) matmuls.insert(trace.ops[id].name);
    }
  }
  if (matmuls.empty()) return;
  warnings.push_back(policy.name + ": keeps every second match of " +
                     joined(names_of(policy.alternate->selectors)) +
                     ", but its regions contain no such op; the matmuls in its regions are " +
                     joined(matmuls));
}

void warn_of_held_gathers(const Policy& policy, const Trace& trace, const Ranges& ranges,
                          std::vector<std::string>& warnings) {
  if (!holds_gathers(policy, trace, ranges)) return;
  warnings.push_back(policy.name +
                     ": blocks gather their parameters outside its regions, which are parts of "
                     "blocks, so gathered parameters are held until backward; use a policy whose "
                     "regions are blocks");
}

}  // namespace

std::vector<std::string> plan_warnings(const Policy& policy, const Plan& plan, const Trace& trace) {
  const Ranges ranges = region_ranges(trace, plan);
  std::vector<std::string> warnings;
  for (const Policy::Expectation& expected : unmet(policy, trace, ranges)) {
    if (expected.module.empty()) warnings.push_back(policy.name + ": " + text_of(expected));
  }
  warn_of_last_layer(policy, plan, trace, warnings);
  warn_of_root(policy, warnings);
  warn_of_empty_alternation(policy, trace, ranges, warnings);
  warn_of_held_gathers(policy, trace, ranges, warnings);
  if (auto missing = missing_modules(policy, trace, ranges)) warnings.push_back(*missing);
  if (const auto store = store_asked_for(policy); store && moved_bytes(plan, trace).count == 0) {
    warnings.push_back(policy.name + " " + traits_of(*store).verb +
                       " nothing: " + explain_empty_move(policy, *store, plan));
  }
  return warnings;
}

std::optional<std::string> missing_modules(const Policy& policy, const Trace& trace,
                                           const Ranges& ranges) {
  std::vector<std::string> missing;
  for (const Policy::Expectation& expected : unmet(policy, trace, ranges)) {
    if (!expected.module.empty()) missing.push_back(expected.module);
  }
  if (missing.empty()) return std::nullopt;
  std::vector<std::string> present;
  for (const Policy::Expectation& module : module_expectations()) {
    const OpRange whole{OpId(), trace.ops.end_id()};
    if (is_met(module, Policy(), trace, {whole})) present.push_back(module.module);
  }
  return policy.name + ": " + trace.model + " has no " + joined(missing, ", no ") +
         ", so nothing is recomputed for it; supported modules in this model: " +
         (present.empty() ? "none" : joined(present));
}

}  // namespace rematch
