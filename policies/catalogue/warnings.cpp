#include "policies/catalogue/warnings.h"

#include <algorithm>
#include <set>
#include <utility>

#include "policies/catalogue/call.h"
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/missing_modules.h"
#include "policies/catalogue/place_regions.h"
#include "policies/catalogue/systems.h"
#include "policies/plan/selector.h"
#include "policies/predict/region.h"
#include "policies/trace/joined.h"

namespace rematch {
namespace {

using Warnings = std::vector<std::string>;

void warn_of_system(const Policy& policy, Warnings& warnings) {
  const std::optional<Call> call = parse_call(policy.name);
  const SystemEntry* entry = call ? find_system_entry(*call) : nullptr;
  if (entry == nullptr || entry->trap.empty() || entry->trap_said == TrapSaid::kInList) return;
  warnings.push_back(policy.name + ": " + std::string(entry->trap));
}

// Backward starts with the last layer: what its region gave up is rebuilt at once.
void warn_of_last_layer(const Policy& policy, const Plan& plan, const Trace& trace,
                        Warnings& warnings) {
  if (policy.regions.kind == RegionChoice::Kind::kRoot || trace.blocks.empty()) return;
  std::set<int> layers;
  std::set<int> checkpointed;
  for (const TracedBlock& block : trace.blocks) layers.insert(block.index);
  for (const PlannedRegion& region : plan.regions) {
    checkpointed.insert(region.layers.begin(), region.layers.end());
  }
  const int last = *layers.rbegin();
  if (checkpointed.size() == layers.size() || !checkpointed.contains(last)) return;
  warnings.push_back(policy.name + " checkpoints the last layer, " + std::to_string(last) +
                     ", though not all: backward starts there and rebuilds it at once, which "
                     "saves nothing at the usual peak");
}

void warn_of_root(const Policy& policy, Warnings& warnings) {
  if (policy.regions.kind != RegionChoice::Kind::kRoot) return;
  warnings.push_back(policy.name +
                     ": one region over the model is rebuilt whole when backward starts "
                     "(whole_region), so its peak is like none's");
}

std::vector<std::string> names_of(const std::vector<Selector>& selectors) {
  std::vector<std::string> names;
  for (const Selector& selector : selectors) names.push_back(to_string(selector));
  return names;
}

bool picks_in(const Selector& selector, const Trace& trace, const std::vector<OpRange>& ranges) {
  const std::vector<bool> picked = matches(selector, trace);
  return std::any_of(ranges.begin(), ranges.end(), [&](OpRange range) {
    return std::find(picked.begin() + range.first, picked.begin() + range.end, true) !=
           picked.begin() + range.end;
  });
}

// An alternation that counts nothing: the list says aten::mm, biased linears are aten::addmm.
void warn_of_empty_alternation(const Policy& policy, const Trace& trace,
                               const std::vector<OpRange>& ranges, Warnings& warnings) {
  if (!policy.alternate || ranges.empty()) return;
  std::set<std::string> matmuls;
  for (const OpRange range : ranges) {
    for (OpId id = range.first; id < range.end; ++id) {
      if (trace.ops[id].op_class == OpClass::kMatmul) matmuls.insert(trace.ops[id].name);
    }
  }
  const auto& counted = policy.alternate->selectors;
  if (matmuls.empty() || std::any_of(counted.begin(), counted.end(), [&](const Selector& selector) {
        return picks_in(selector, trace, ranges);
      })) {
    return;
  }
  warnings.push_back(policy.name + ": keeps every second of " + joined(names_of(counted)) +
                     ", but its regions have none of them; their matmuls are " + joined(matmuls));
}

bool goes_by_class(const Policy& policy, const Selector& selector) {
  const std::string_view name = std::string_view(selector.op).substr(0, selector.op.find('.'));
  return !policy.exact_names && op_class_of(name) == OpClass::kAttentionForward;
}

std::vector<Selector> all_selectors(const Policy& policy) {
  std::vector<Selector> all = policy.save;
  const auto add = [&all](const std::vector<Selector>& list) {
    all.insert(all.end(), list.begin(), list.end());
  };
  add(policy.offload);
  add(policy.exclude);
  add(policy.recompute);
  if (policy.alternate) add(policy.alternate->exclude);
  return all;
}

// The entry of the catalogue that the policy is, whichever system's spelling was typed; "" for a
// policy file, whatever its name.
std::string catalogue_name(const Policy& policy) {
  if (!is_what_its_name_says(policy)) return {};
  const std::string spelling = catalogue_spelling(policy.name);
  return spelling.substr(0, spelling.find('('));
}

// The catalogue's lists are meant for any model, so what they miss is no mistake: only a policy
// file's selectors are the user's own, and those that some entries of the catalogue take.
std::vector<Selector> users_own(const Policy& policy) {
  const std::string name = catalogue_name(policy);
  if (name.empty()) return all_selectors(policy);
  if (name == "full_except") {
    std::vector<Selector> given = policy.save;
    std::erase(given, Selector{"", "random", std::nullopt});  // its own
    return given;
  }
  if (name == "sac_modalities") return policy.save;  // one for each key, but for aten.mm
  if (name == "sac_titan_excluding") return policy.alternate->exclude;
  return {};
}

void warn_of_misses(const Policy& policy, const Trace& trace, const std::vector<OpRange>& ranges,
                    Warnings& warnings) {
  if (ranges.empty()) return;
  for (const Selector& selector : users_own(policy)) {
    if (goes_by_class(policy, selector) || picks_in(selector, trace, ranges)) continue;
    warnings.push_back(policy.name + ": nothing in its regions matches " + to_string(selector));
  }
}

// A policy file names its regions' scopes itself; a catalogue policy's are those of any model.
void warn_of_missing_scopes(const Policy& policy, const Trace& trace, Warnings& warnings) {
  if (policy.regions.kind != RegionChoice::Kind::kScopes || is_what_its_name_says(policy)) return;
  for (const std::string& pattern : policy.regions.patterns) {
    Policy alone = policy;
    alone.regions.patterns = {pattern};
    alone.regions.only_with.clear();
    if (std::holds_alternative<Rejected>(place_regions(alone, trace))) {
      warnings.push_back(policy.name + ": no scope in its blocks matches " + pattern);
    }
  }
}

// Of attention and feed-forward, which sac_split gives a policy each, one that no block has.
void warn_of_missing_parts(const Policy& policy, const Trace& trace, Warnings& warnings) {
  const std::string name = catalogue_name(policy);
  if (name != "sac_split" && name != "sac_split_flex_eager") return;
  for (const auto& [part, alone] :
       {std::pair("attention", "sac_split(attn: full, ffn: none)"),
        std::pair("feed-forward", "sac_split(attn: none, ffn: full)")}) {
    const Policy of_part = std::get<Policy>(parse_policy(alone));
    const std::vector<std::string>& ruled = policy.regions.patterns;
    const bool is_ruled =
        std::find(ruled.begin(), ruled.end(), of_part.regions.patterns.front()) != ruled.end();
    if (!is_ruled || !std::holds_alternative<Rejected>(place_regions(of_part, trace))) continue;
    warnings.push_back(policy.name + ": the blocks of " + trace.model + " have no scope of " +
                       part + " (" + joined(of_part.regions.patterns) +
                       "), so its policy rules nothing");
  }
}

// Attention as one op saves its inputs and a number a row; what its recompute drops is its output,
// which the projection behind it saves in turn.
void warn_of_fused_core(const Policy& policy, const Trace& trace,
                        const std::vector<OpRange>& ranges, Warnings& warnings) {
  if (modules_named_by(policy) != std::vector<std::string>{"core_attn"}) return;
  const auto is_one_op = [&trace](OpRange range) {
    return std::any_of(
        trace.ops.begin() + range.first, trace.ops.begin() + range.end,
        [](const TracedOp& op) { return op.op_class == OpClass::kAttentionForward; });
  };
  if (std::none_of(ranges.begin(), ranges.end(), is_one_op)) return;
  warnings.push_back(policy.name +
                     ": attention is one fused op here, so to recompute it gains next to nothing");
}

}  // namespace

std::vector<std::string> plan_warnings(const Policy& policy, const Plan& plan, const Trace& trace) {
  Warnings warnings;
  const std::vector<OpRange> ranges = region_ranges(trace, plan);
  warn_of_system(policy, warnings);
  warn_of_last_layer(policy, plan, trace, warnings);
  warn_of_root(policy, warnings);
  warn_of_empty_alternation(policy, trace, ranges, warnings);
  warn_of_misses(policy, trace, ranges, warnings);
  warn_of_missing_scopes(policy, trace, warnings);
  warn_of_missing_parts(policy, trace, warnings);
  if (auto missing = missing_modules(policy, trace)) warnings.push_back(*std::move(missing));
  warn_of_fused_core(policy, trace, ranges, warnings);
  return warnings;
}

}  // namespace rematch
