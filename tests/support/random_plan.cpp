#include "tests/support/random_plan.h"
#include "policies/predict/region/trace_index.h"

#include <random>

#include "policies/predict/region/order.h"
#include "policies/predict/region/region.h"
#include "policies/predict/step/stored.h"

namespace rematch::testing {
namespace {

class RandomPlan {
 public:
  RandomPlan(const Trace& trace, std::uint32_t seed) : trace_(trace), dice_(seed) {
    percent_saved_ = static_cast<int>(dice_() % 5) * 20;
    plan_.policy = "random";
    plan_.model = trace.model;
    plan_.dimensions = trace.dimensions;
    plan_.dtype = trace.dtype;
    plan_.trace_sha256 = trace_sha256(trace);
  }

  Plan make() {
    for (std::size_t block = 0; block < trace_.blocks.size(); ++block) {
      const ScopeId scope = trace_.blocks[block].scope;
      const int kind = below(10);
      if (kind < 2) continue;
      if (kind < 6) {
        add(scope, scope);
      } else if (kind < 8 && block + 1 < trace_.blocks.size() && are_neighbours(block)) {
        add(scope, trace_.blocks[++block].scope);
      } else {
        add_inner_scopes(scope);
      }
    }
    return std::move(plan_);
  }

 private:
  int below(int limit) { return static_cast<int>(dice_() % static_cast<std::uint32_t>(limit)); }

  const TracedScope& at(ScopeId scope) const { return trace_.scopes[scope]; }

  bool are_neighbours(std::size_t block) const {
    const TracedScope& first = at(trace_.blocks[block].scope);
    const TracedScope& second = at(trace_.blocks[block + 1].scope);
    return first.end_op == second.first_op;
  }

  // Only the first opening of a scope gets a region, because a plan's first region with a path
  // always applies to the first opening of this path.
  bool is_first_opening(ScopeId scope) const {
    for (const ScopeId id : IdRange(ScopeId(), scope)) {
      if (at(id).path == at(scope).path) return false;
    }
    return true;
  }

  // Adds regions for some of the scopes inside the block.
  void add_inner_scopes(ScopeId block) {
    for (const ScopeId id : IdRange(block + 1, trace_.scopes.end_id())) {
      if (at(id).parent != block || !is_first_opening(id)) continue;
      if (at(id).first_op < at(id).end_op && below(3) > 0) add(id, id);
    }
  }

  void add(ScopeId first, ScopeId last) {
    const OpRange range{at(first).first_op, at(last).end_op};
    RegionType type;
    const bool skips = below(3) == 0;
    for (const OpId op : range.ids()) {
      const TracedOp& traced = trace_.ops[op];
      PlannedOp planned;
      planned.name = traced.name;
      const bool can_save = !traced.is_view && traced.writes.empty();
      if (can_save && below(100) < percent_saved_) planned.treatment = Treatment::kSave;
      planned.skipped = skips && planned.treatment == Treatment::kRecompute && below(3) == 0;
      type.ops.push_back(std::move(planned));
    }
    type.early_stop = below(2) == 0;
    choose_order(trace_, range.first, range.end, type);
    if (below(6) == 0) type.whole_on_demand = true;
    type.by_demand = below(6) == 0;
    plan_.regions.push_back(
        {at(first).path, at(last).path, static_cast<int>(plan_.types.size()), {}});
    plan_.types.push_back(std::move(type));
  }

  const Trace& trace_;
  std::mt19937 dice_;
  int percent_saved_ = 0;
  Plan plan_;
};

}  // namespace

Plan random_plan(const Trace& trace, std::uint32_t seed) { return RandomPlan(trace, seed).make(); }

Plan random_offload_plan(const Trace& trace, std::uint32_t seed) {
  Plan plan = random_plan(trace, seed);
  std::mt19937 dice(seed);
  const std::vector<OpRange> ranges = region_ranges(trace, plan);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    RegionType& type = plan.types[static_cast<std::size_t>(plan.regions[i].type)];
    for (std::size_t op = 0; op < type.ops.size(); ++op) {
      const TracedOp& traced = trace.ops[ranges[i].first + static_cast<int>(op)];
      const bool can_keep =
          !traced.is_view && traced.writes.empty() && has_final_result(traced.name);
      const bool is_saved = type.ops[op].treatment == Treatment::kSave;
      if (can_keep && dice() % (is_saved ? 2 : 8) == 0) {
        type.ops[op].treatment = Treatment::kOffload;
      }
    }
    for (const RegionInput& input : movable_inputs(trace, make_region_graph(trace, ranges[i]))) {
      if (dice() % 2 == 0) type.stored_inputs[Store::kHost].push_back(input);
    }
  }
  return plan;
}

}  // namespace rematch::testing
