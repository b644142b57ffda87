#include "policies/search/plan_judge.h"

#include <algorithm>

#include "policies/search/stretch_pricing.h"

namespace rematch {
namespace {

std::string outermost_scope(const Trace& trace, OpId op) {
  ScopeId scope = trace.ops[op].scope;
  if (scope == kNone) return "outside scopes";
  const auto is_block = [&](ScopeId id) {
    return std::any_of(trace.blocks.begin(), trace.blocks.end(),
                       [&](const TracedBlock& block) { return block.scope == id; });
  };
  while (trace.scopes[scope].parent != kNone && !is_block(scope))
    scope = trace.scopes[scope].parent;
  return trace.scopes[scope].path;
}

}  // namespace

PlanFigures judge_plan(const Trace& trace, const StretchMap& map, const OpTimes& times,
                       const Plan& plan, Schedule schedule) {
  StretchPricer pricer(trace, map, times, 0, static_cast<int>(map.stretches.size()));
  std::vector<StretchPricer::TypedRegion> regions;
  const std::vector<OpRange> ranges = region_ranges(trace, plan);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    regions.push_back({ranges[i], plan.types[plan.regions[i].type]});
  }
  PlanFigures figures;
  figures.peak = map.most_born;
  figures.gradients_at_peak = map.most_born;
  figures.peak_place = "the end of backward";
  Bytes held;
  for (const PieceFigures& piece : pricer.pieces_of(regions, schedule)) {
    if (held + piece.transient > figures.peak) {
      figures.peak = held + piece.transient;
      figures.peak_place = outermost_scope(trace, piece.first_op);
      figures.saved_at_peak = held;
      figures.gradients_at_peak = piece.born;
    }
    held += piece.held;
    figures.recompute += piece.recompute;
    figures.num_recomputed += piece.num_recomputed;
  }
  figures.peak += trace.parameter_bytes;
  return figures;
}

}  // namespace rematch
