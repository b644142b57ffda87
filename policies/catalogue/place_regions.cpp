#include "policies/catalogue/place_regions.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "models/scope/names.h"
#include "policies/base/text.h"
#include "policies/trace/collective.h"

namespace rematch {

std::vector<BlockList> block_lists(const Trace& trace) {
  std::vector<BlockList> lists;
  std::map<std::string, std::size_t> by_name;
  for (const TracedBlock& block : trace.blocks) {
    const auto [found, is_new] = by_name.try_emplace(block.list, lists.size());
    if (is_new) lists.push_back({block.list, {}, 0});
    BlockList& list = lists[found->second];
    list.blocks.push_back(block);
    list.num_layers = std::max(list.num_layers, block.index + 1);
  }
  return lists;
}

namespace {

bool chooses(const BlockChoice& choice, int layer, int num_layers) {
  return rule_of(choice.kind).chooses(choice, layer, num_layers);
}

std::string layers_of(const std::string& model, int num_layers) {
  return model + " has " + std::to_string(num_layers) + (num_layers == 1 ? " layer" : " layers");
}

// Checks that N and the layer indices fit the longest block list.
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

// Returns whether the block scope `next` must start a new region instead of extending `run`. It
// must do so if another block runs in between, or if `run` already contains the same block. A
// region ends when its last scope first closes, so it cannot contain a scope twice.
bool ends_run(const Trace& trace, const PlacedRegion& run, ScopeId next) {
  const TracedScope& scope = trace.scopes[next];
  return std::any_of(trace.blocks.begin(), trace.blocks.end(), [&](const TracedBlock& block) {
    const TracedScope& other = trace.scopes[block.scope];
    const bool lies_between = other.first_op >= run.range.end && other.first_op < other.end_op &&
                              other.end_op <= scope.first_op;
    const bool is_second_run = other.path == scope.path && other.first_op >= run.range.first &&
                               other.end_op <= run.range.end;
    return lies_between || is_second_run;
  });
}

// Adds regions that contain the chosen blocks, up to n consecutive blocks in each region. A region
// ends earlier if the next block of the list is not chosen, or if ends_run() returns true for it.
void add_runs(const Trace& trace, const BlockList& list, const BlockChoice& choice, int n,
              std::vector<PlacedRegion>& regions) {
  int in_run = 0;
  for (const TracedBlock& block : list.blocks) {
    if (!chooses(choice, block.index, list.num_layers)) {
      in_run = 0;
      continue;
    }
    const PlacedRegion region = region_of(trace, block.scope, block.scope, {block.index});
    if (in_run > 0 && ends_run(trace, regions.back(), block.scope)) in_run = 0;
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

struct ScopeBelow {
  ScopeId id;
  std::string_view path;  // path relative to the block
};

std::vector<ScopeBelow> scopes_below(const Trace& trace, const TracedBlock& block) {
  const std::size_t prefix = trace.scopes[block.scope].path.size() + 1;
  std::vector<ScopeBelow> below;
  for (const ScopeId id : IdRange(block.scope + 1, trace.scopes.end_id())) {
    const std::string_view path = trace.scopes[id].path;
    if (!is_below(trace, id, block.scope) || path.size() <= prefix) continue;
    below.push_back({id, path.substr(prefix)});
  }
  return below;
}

// Adds a region for each of the block's inner scopes whose relative path matches a pattern. Skips
// scopes inside such a scope. If `only_with` is set but matches no inner scope, adds the whole
// block instead.
void add_scopes(const Trace& trace, const TracedBlock& block, const RegionChoice& choice,
                std::vector<PlacedRegion>& regions) {
  const std::vector<ScopeBelow> below = scopes_below(trace, block);
  const bool is_split = choice.only_with.empty() ||
                        std::any_of(below.begin(), below.end(), [&](const ScopeBelow& scope) {
                          return matches_pattern(choice.only_with, scope.path);
                        });
  if (!is_split) {
    regions.push_back(region_of(trace, block.scope, block.scope, {block.index}));
    return;
  }
  OpId covered;
  for (const ScopeBelow& scope : below) {
    if (trace.scopes[scope.id].first_op < covered) continue;
    if (std::any_of(choice.patterns.begin(), choice.patterns.end(),
                    [&](const std::string& p) { return matches_pattern(p, scope.path); })) {
      regions.push_back(region_of(trace, scope.id, scope.id, {block.index}));
      covered = trace.scopes[scope.id].end_op;
    }
  }
}

std::string scope_names_below(const Trace& trace, const TracedBlock& block) {
  std::vector<std::string_view> names;
  for (const ScopeBelow& scope : scopes_below(trace, block)) names.push_back(scope.path);
  return names.empty() ? "none" : joined(names);
}

// Returns a region of all top-level scopes except the loss. Backward begins with the loss and needs
// its saved tensors immediately, so recomputing the loss gains nothing.
std::vector<PlacedRegion> root_region(const Trace& trace) {
  std::optional<ScopeId> first;
  ScopeId last;
  for (const ScopeId id : trace.scopes.ids()) {
    if (trace.scopes[id].parent || trace.scopes[id].path == scope_names::kLoss) continue;
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

namespace {

bool overlap(const std::vector<OpRange>& regions, OpRange range) {
  return std::any_of(regions.begin(), regions.end(), [range](OpRange region) {
    return region.first < range.end && range.first < region.end;
  });
}

}  // namespace

std::vector<PlacedRegion> blocks_that_only_gather(const Policy& policy, const Trace& trace,
                                                  const std::vector<PlacedRegion>& placed) {
  std::vector<PlacedRegion> regions;
  if (!policy.reshard_after_forward) return regions;
  std::vector<OpRange> ranges;
  for (const PlacedRegion& region : placed) ranges.push_back(region.range);
  for (const TracedBlock& block : trace.blocks) {
    PlacedRegion region = region_of(trace, block.scope, block.scope, {block.index});
    if (overlap(ranges, region.range) || parameter_gathers(trace, block).empty()) continue;
    regions.push_back(std::move(region));
  }
  return regions;
}

bool holds_gathers(const Policy& policy, const Trace& trace, const std::vector<OpRange>& regions) {
  if (!policy.reshard_after_forward) return false;
  return std::any_of(trace.blocks.begin(), trace.blocks.end(), [&](const TracedBlock& block) {
    const TracedScope& scope = trace.scopes[block.scope];
    if (!overlap(regions, {scope.first_op, scope.end_op})) return false;
    const std::vector<OpId> gathers = parameter_gathers(trace, block);
    return std::any_of(gathers.begin(), gathers.end(), [&](OpId op) {
      return !overlap(regions, {op, op + 1});
    });
  });
}

}  // namespace rematch
