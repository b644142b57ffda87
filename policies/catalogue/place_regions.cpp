#include "policies/catalogue/place_regions.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "policies/base/text.h"

namespace rematch {
namespace {

// The blocks of one list, in forward order. A looped layer appears as often as it runs.
struct BlockList {
  std::vector<TracedBlock> blocks;
  int num_layers = 0;
};

std::vector<BlockList> block_lists(const Trace& trace) {
  std::vector<BlockList> lists;
  std::map<std::string, std::size_t> by_name;
  for (const TracedBlock& block : trace.blocks) {
    const auto [found, is_new] = by_name.try_emplace(block.list, lists.size());
    if (is_new) lists.emplace_back();
    BlockList& list = lists[found->second];
    list.blocks.push_back(block);
    list.num_layers = std::max(list.num_layers, block.index + 1);
  }
  return lists;
}

bool chooses(const BlockChoice& choice, int layer, int num_layers) {
  return rule_of(choice.kind).chooses(choice, layer, num_layers);
}

std::string layers_of(const std::string& model, int num_layers) {
  return model + " has " + std::to_string(num_layers) + (num_layers == 1 ? " layer" : " layers");
}

// Checks N and the layer indices against the longest block list.
std::optional<Rejected> check_range(const Policy& policy, const Trace& trace, int num_layers) {
  const std::string model = layers_of(trace.model, num_layers);
  const bool segments = policy.regions.kind == RegionChoice::Kind::kSegments;
  const bool has_n = rule_of(policy.blocks.kind).argument == ChoiceArgument::kCount;
  for (const auto& [used, n] :
       {std::pair(has_n, policy.blocks.n), std::pair(segments, policy.regions.n)}) {
    if (used && (n < 1 || n > num_layers)) {
      return Rejected{policy.name + ": N is " + std::to_string(n) + ", but " + model +
                      "; use 1 to " + std::to_string(num_layers)};
    }
  }
  for (int index : policy.blocks.indices) {
    if (index < 0 || index >= num_layers) {
      return Rejected{policy.name + ": layer " + std::to_string(index) + " does not exist, " +
                      model + "; use indices 0 to " + std::to_string(num_layers - 1)};
    }
  }
  return std::nullopt;
}

PlacedRegion region_of(const Trace& trace, ScopeId first, ScopeId last, std::vector<int> layers) {
  return {{trace.scopes[first].path, trace.scopes[last].path, 0, std::move(layers)},
          first,
          {trace.scopes[first].first_op, trace.scopes[last].end_op}};
}

// Chosen blocks in runs of at most n; a layer that is not chosen ends a run.
void add_runs(const Trace& trace, const BlockList& list, const BlockChoice& choice, int n,
              std::vector<PlacedRegion>& regions) {
  int in_run = 0;
  for (const TracedBlock& block : list.blocks) {
    if (!chooses(choice, block.index, list.num_layers)) {
      in_run = 0;
      continue;
    }
    const PlacedRegion region = region_of(trace, block.scope, block.scope, {block.index});
    if (in_run == 0) {
      regions.push_back(region);
    } else {
      regions.back().planned.last_scope = region.planned.last_scope;
      regions.back().planned.layers.push_back(block.index);
      regions.back().range.end = region.range.end;
    }
    in_run = (in_run + 1) % n;
  }
}

bool is_below(const Trace& trace, std::optional<ScopeId> scope, ScopeId ancestor) {
  while (scope && scope != ancestor) scope = trace.scopes[*scope].parent;
  return scope == ancestor;
}

bool has_scope_below(const Trace& trace, const TracedBlock& block, const std::string& pattern) {
  const std::size_t prefix = trace.scopes[block.scope].path.size() + 1;
  for (const ScopeId id : IdRange(block.scope + 1, trace.scopes.end_id())) {
    const std::string_view path = trace.scopes[id].path;
    if (is_below(trace, id, block.scope) && path.size() > prefix &&
        matches_pattern(pattern, path.substr(prefix))) {
      return true;
    }
  }
  return false;
}

// The outermost scopes below the block whose path, relative to it, matches a pattern.
void add_scopes(const Trace& trace, const TracedBlock& block, const RegionChoice& choice,
                std::vector<PlacedRegion>& regions) {
  if (!choice.only_with.empty() && !has_scope_below(trace, block, choice.only_with)) {
    regions.push_back(region_of(trace, block.scope, block.scope, {block.index}));
    return;
  }
  const std::size_t prefix = trace.scopes[block.scope].path.size() + 1;
  OpId covered;
  for (const ScopeId id : IdRange(block.scope + 1, trace.scopes.end_id())) {
    const TracedScope& scope = trace.scopes[id];
    if (!is_below(trace, id, block.scope) || scope.path.size() <= prefix) continue;
    if (scope.first_op < covered) continue;
    const std::string_view relative = std::string_view(scope.path).substr(prefix);
    if (std::any_of(choice.patterns.begin(), choice.patterns.end(),
                    [&](const std::string& p) { return matches_pattern(p, relative); })) {
      regions.push_back(region_of(trace, id, id, {block.index}));
      covered = scope.end_op;
    }
  }
}

std::string scope_names_below(const Trace& trace, const TracedBlock& block) {
  const std::size_t prefix = trace.scopes[block.scope].path.size() + 1;
  std::string names;
  for (const ScopeId id : IdRange(block.scope + 1, trace.scopes.end_id())) {
    if (!is_below(trace, id, block.scope)) continue;
    names += (names.empty() ? "" : ", ") + trace.scopes[id].path.substr(prefix);
  }
  return names.empty() ? "none" : names;
}

// All top-level scopes but the loss. Backward needs the loss's saved tensors at once, so
// recomputing them gains nothing.
std::vector<PlacedRegion> root_region(const Trace& trace) {
  std::optional<ScopeId> first;
  ScopeId last;
  for (const ScopeId id : trace.scopes.ids()) {
    if (trace.scopes[id].parent || trace.scopes[id].path == "loss") continue;
    if (!first) first = id;
    last = id;
  }
  if (!first) return {};
  std::set<int> layers;
  for (const TracedBlock& block : trace.blocks) layers.insert(block.index);
  return {region_of(trace, *first, last, {layers.begin(), layers.end()})};
}

std::variant<std::vector<PlacedRegion>, Rejected> place(const Policy& policy, const Trace& trace) {
  if (policy.regions.kind == RegionChoice::Kind::kRoot) return root_region(trace);
  std::vector<PlacedRegion> regions;
  for (const BlockList& list : block_lists(trace)) {
    switch (policy.regions.kind) {
      case RegionChoice::Kind::kSegments:
        add_runs(trace, list, policy.blocks, policy.regions.n, regions);
        break;
      case RegionChoice::Kind::kScopes:
        for (const TracedBlock& block : list.blocks) {
          if (chooses(policy.blocks, block.index, list.num_layers)) {
            add_scopes(trace, block, policy.regions, regions);
          }
        }
        break;
      default:
        add_runs(trace, list, policy.blocks, 1, regions);
    }
  }
  if (policy.regions.kind == RegionChoice::Kind::kScopes && regions.empty()) {
    return Rejected{policy.name + ": no scope in a chosen block matches " +
                    joined(policy.regions.patterns) + "; the blocks of " + trace.model +
                    " have the scopes " + scope_names_below(trace, trace.blocks.front())};
  }
  return regions;
}

}  // namespace

std::variant<std::vector<PlacedRegion>, Rejected> place_regions(const Policy& policy,
                                                                const Trace& trace) {
  if (policy.blocks.kind == BlockChoice::Kind::kNone) return std::vector<PlacedRegion>{};
  int num_layers = 0;
  for (const TracedBlock& block : trace.blocks) num_layers = std::max(num_layers, block.index + 1);
  if (num_layers == 0 && policy.regions.kind != RegionChoice::Kind::kRoot) {
    return Rejected{policy.name + ": the trace of " + trace.model +
                    " has no layers; open its blocks as scopes with a layer index, or use root"};
  }
  if (auto rejected = check_range(policy, trace, num_layers)) return *rejected;
  auto placed = place(policy, trace);
  if (auto* regions = std::get_if<std::vector<PlacedRegion>>(&placed)) {
    std::erase_if(*regions, [](const PlacedRegion& r) { return r.range.first >= r.range.end; });
    std::sort(regions->begin(), regions->end(), [](const PlacedRegion& a, const PlacedRegion& b) {
      return a.range.first < b.range.first;
    });
  }
  return placed;
}

}  // namespace rematch
