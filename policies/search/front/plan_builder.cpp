#include "policies/search/front/plan_builder.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "policies/predict/region/late_copies.h"
#include "policies/search/region/block_front.h"
#include "policies/search/region/offload_options.h"
#include "policies/search/region/save_sets.h"
#include "policies/trace/trace_op.h"

namespace rematch {
namespace {

std::string reason_of(const TracedOp& op, Treatment treatment) {
  if (treatment.is_moved()) return "in the save set, " + std::string(place_of(treatment));
  if (treatment.is_kept()) return "in the save set";
  if (op.is_view) return "view: free";
  if (!op.writes.empty()) return "writes in place: always executed";
  return "not in the save set";
}

}  // namespace

PlanBuilder::PlanBuilder(const Trace& trace, std::string trace_sha256, const SpanMap& map,
                         const SpanOptions& options, const SearchSpace& space)
    : trace_(trace),
      map_(map),
      options_(options),
      space_(space),
      trace_sha256_(std::move(trace_sha256)),
      times_opened_(times_opened(trace)) {}

Plan PlanBuilder::build(const std::vector<int>& mix, std::string name) {
  Plan plan;
  plan.policy = std::move(name);
  plan.model = trace_.model;
  plan.dimensions = trace_.dimensions;
  plan.dtype = trace_.dtype;
  plan.hidden = trace_.hidden;
  plan.trace_sha256 = trace_sha256_;
  const std::set<std::string_view> counted = counted_blocks(mix);
  int first = 0;
  for (int chosen : mix) {
    const Span& span = map_.spans[first];
    const SpanOption& option = options_.lists[span.kind][chosen];
    const int last = first + option.figures.num_layers - 1;
    const bool must_count = option.regions.empty() && span.is_repeated &&
                            counted.contains(trace_.scopes[*span.scope].path);
    add_regions(plan, must_count ? fastest_region(first) : option.regions, first, last);
    first = last + 1;
  }
  plan.watches_writes = has_late_copies(trace_, region_ranges(trace_, plan));
  return plan;
}

// Note [Runs are counted] The i-th region that starts at a scope belongs to the i-th opening of
// this scope. If one run of a block has a region, all runs of the block must therefore have one.
std::set<std::string_view> PlanBuilder::counted_blocks(const std::vector<int>& mix) const {
  std::set<std::string_view> counted;
  int first = 0;
  for (int chosen : mix) {
    const Span& span = map_.spans[first];
    const SpanOption& option = options_.lists[span.kind][chosen];
    if (span.is_repeated && !option.regions.empty()) {
      counted.insert(trace_.scopes[*span.scope].path);
    }
    first += option.figures.num_layers;
  }
  return counted;
}

void PlanBuilder::add_regions(Plan& plan, const std::vector<RegionSaves>& regions, int first,
                              int last) {
  for (const RegionSaves& region : regions) {
    const OpId start = map_.spans[first].range.first;
    const OpRange range = {start + region.range.first, start + region.range.end};
    const Place place = place_of(range, first, last);
    PlannedRegion planned{trace_.scopes[place.first].path, trace_.scopes[place.last].path, 0, {}};
    for (int i = first; i <= last; ++i) {
      planned.layers.push_back(trace_.blocks[*map_.spans[i].block].index);
    }
    const RegionType& type = type_of(range, region, first, last);
    const auto same = std::find(plan.types.begin(), plan.types.end(), type);
    planned.type = static_cast<int>(same - plan.types.begin());
    if (same == plan.types.end()) plan.types.push_back(type);
    plan.regions.push_back(std::move(planned));
  }
}

// Returns a region that covers the block and keeps the same tensors as autograd. Its recompute runs
// only views.
std::vector<RegionSaves> PlanBuilder::fastest_region(int span) const {
  const OpRange range = map_.spans[span].range;
  const RegionGraph graph = map_.index.graph(range);
  std::set<int> saves;
  for (const int slot : demanded_slots(graph)) {
    OptionalIndex op = graph.values[graph.slots[slot].use.value].producer;
    while (op.has_value() && graph.ops[*op].is_view && !graph.ops[*op].reads.empty()) {
      op = graph.values[graph.ops[*op].reads.front().value].producer;
    }
    if (op.has_value()) saves.insert(*op);
  }
  return {{{0, range.end - range.first}, {saves.begin(), saves.end()}}};
}

// Returns the scopes where the range starts and ends: two blocks, or two scopes with the same
// parent inside a block. Prefers outer scopes. Ignores scopes that open several times, because a
// plan names a region by paths.
PlanBuilder::Place PlanBuilder::place_of(OpRange range, int first, int last) const {
  // every region is inside blocks, so spans `first` and `last` are blocks
  const ScopeId first_block = *map_.spans[first].scope;
  const ScopeId last_block = *map_.spans[last].scope;
  if (range.first == map_.spans[first].range.first && range.end == map_.spans[last].range.end) {
    return {first_block, last_block};
  }
  const auto is_name = [&](ScopeId id) {
    const TracedScope& scope = trace_.scopes[id];
    return scope.first_op < scope.end_op && scope.end_op <= range.end &&
           times_opened_.at(scope.path) == 1;
  };
  for (const ScopeId start : IdRange(first_block + 1, trace_.scopes.end_id())) {
    if (trace_.scopes[start].first_op != range.first || !is_name(start)) continue;
    for (const ScopeId end : IdRange(start, trace_.scopes.end_id())) {
      if (trace_.scopes[end].parent != trace_.scopes[start].parent || !is_name(end)) continue;
      if (trace_.scopes[end].end_op == range.end) return {start, end};
    }
  }
  throw std::logic_error("a region found by the search does not start or end at a scope");
}

const RegionType& PlanBuilder::type_of(OpRange range, const RegionSaves& region, int first,
                                       int last) {
  std::vector<int> kinds;
  for (int i = first; i <= last; ++i) kinds.push_back(map_.spans[i].kind);
  const auto [found, is_new] =
      types_.try_emplace({std::move(kinds), region.range.first, region.range.end, region.saves,
                          region.offloaded, !region.offload_inputs.empty()});
  if (is_new) found->second = make_type(range, region, first);
  return found->second;
}

RegionType PlanBuilder::make_type(OpRange range, const RegionSaves& region, int first) const {
  const RegionGraph graph = map_.index.graph(range);
  SaveSetCosts costs;
  costs.schedule = space_.schedule;
  RegionType type = play_saves(graph, costs, region.saves).type;
  set_offloads(region, type);
  const bool several = range.end > map_.spans[first].range.end;
  for (std::size_t i = 0; i < type.ops.size(); ++i) {
    const OpId op = range.first + static_cast<int>(i);
    const TracedOp& traced = trace_.ops[op];
    PlannedOp& planned = type.ops[i];
    planned.name = traced.name;
    planned.scope = scope_name(op, first, several);
    planned.bytes = fresh_bytes(trace_, traced);
    planned.reason = reason_of(traced, planned.treatment);
  }
  return type;
}

// Returns the path of the op's scope relative to its block, so that regions of equal layers are
// equal. In a region of several layers, the path starts with the index of the layer in the region.
std::string PlanBuilder::scope_name(OpId op, int first, bool several) const {
  int span = first;
  while (op >= map_.spans[span].range.end) ++span;
  const std::string& block = trace_.scopes[*map_.spans[span].scope].path;
  const std::string& path = trace_.scopes[*trace_.ops[op].scope].path;
  std::string inside = path.size() > block.size() ? path.substr(block.size() + 1) : "";
  if (!several) return inside;
  std::string name = "+";
  name += std::to_string(span - first);
  if (!inside.empty()) name += "." + inside;
  return name;
}

}  // namespace rematch
