// Steps that run the same ops have the same shape: see Note [Shapes of a step].
#include "policies/catalogue/shapes.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "policies/catalogue/place_regions.h"
#include "policies/catalogue/region_types.h"
#include "policies/catalogue/treat_ops.h"
#include "policies/predict/region/order.h"
#include "policies/predict/region/trace_index.h"
#include "policies/predict/step/step.h"
#include "policies/trace/collective.h"
#include "policies/trace/hidden_effects.h"
#include "policies/trace/trace_op.h"

namespace rematch {
namespace {

// Paths of the scopes where at least one shape has a region.
using Places = std::set<std::string>;

bool is_inside(OpRange inner, OpRange outer) {
  return outer.first <= inner.first && inner.end <= outer.end;
}

OpRange range_of(const TracedScope& scope) { return {scope.first_op, scope.end_op}; }

// A region with its type and its op range in the trace.
struct LocatedType {
  PlannedRegion planned;
  OpRange range;
  RegionType type;
};

std::vector<LocatedType> located(const Trace& trace, const Plan& plan) {
  std::vector<LocatedType> regions;
  for (const OpRange range : region_ranges(trace, plan)) {
    const PlannedRegion& region = plan.regions[regions.size()];
    regions.push_back({region, range, plan.types[static_cast<std::size_t>(region.type)]});
  }
  return regions;
}

void put_regions(std::vector<LocatedType> regions, Plan& plan) {
  std::sort(regions.begin(), regions.end(), [](const LocatedType& a, const LocatedType& b) {
    return a.range.first < b.range.first;
  });
  plan.types.clear();
  plan.regions.clear();
  for (LocatedType& region : regions) {
    region.planned.type = add_once(plan.types, std::move(region.type));
    plan.regions.push_back(std::move(region.planned));
  }
}

// Copies treatments from a region to `ops`, which are the ops of `range`. Copies only where the
// region and the range overlap.
void copy_treatments(const LocatedType& from, OpRange range, std::vector<PlannedOp>& ops) {
  for (const OpId id :
       IdRange(std::max(from.range.first, range.first), std::min(from.range.end, range.end))) {
    const PlannedOp& planned = from.type.ops[static_cast<std::size_t>(id - from.range.first)];
    PlannedOp& op = ops[static_cast<std::size_t>(id - range.first)];
    op.treatment = planned.treatment;
    op.reason = planned.reason;
  }
}

// Returns a policy that keeps every useful result.
Policy keep_all() {
  Policy policy;
  policy.inverse = true;
  return policy;
}

// Returns a list with the layer that contains the scope. Returns an empty list if the scope is
// outside all layers.
std::vector<int> layers_around(const Trace& trace, std::optional<ScopeId> scope) {
  for (; scope; scope = trace.scopes[*scope].parent) {
    for (const TracedBlock& block : trace.blocks) {
      if (block.scope == *scope) return {block.index};
    }
  }
  return {};
}

// Adds regions to the plan of one shape. Afterwards the plan has a region wherever the engine may
// open one.
class ShapeCompleter {
 public:
  ShapeCompleter(const Trace& trace, Plan plan)
      : trace_(trace),
        index_(trace),
        policy_(keep_all()),
        treater_(policy_, trace),
        types_(policy_, index_, treater_),
        plan_(std::move(plan)) {
    regions_ = located(trace, plan_);
  }

  Plan complete(const Places& places) {
    for (const ScopeId scope : trace_.scopes.ids()) {  // an outer scope has a lower id than the
                                                       // scopes inside it
      if (places.contains(trace_.scopes[scope].path)) add(scope);
    }
    put_regions(std::move(regions_), plan_);
    return std::move(plan_);
  }

 private:
  void add(ScopeId id) {
    const TracedScope& scope = trace_.scopes[id];
    const OpRange range = range_of(scope);
    const bool is_planned =
        std::any_of(regions_.begin(), regions_.end(), [&](const LocatedType& region) {
          const bool is_below = region.planned.first_scope.starts_with(scope.path + ".");
          return !is_below && is_inside(range, region.range);
        });
    if (is_planned || range.first >= range.end) return;
    const auto inner = std::stable_partition(
        regions_.begin(), regions_.end(),
        [&](const LocatedType& region) { return !is_inside(region.range, range); });
    const PlacedRegion placed{{scope.path, scope.path, 0, layers_around(trace_, id)}, id, range};
    RegionType type = types_.make(placed, [&](std::vector<PlannedOp>& ops) {
      for (auto region = inner; region != regions_.end(); ++region)
        copy_treatments(*region, range, ops);
    });
    regions_.erase(inner, regions_.end());
    regions_.push_back({placed.planned, range, std::move(type)});
  }

  const Trace& trace_;
  const TraceIndex index_;
  const Policy policy_;
  const OpTreater treater_;
  RegionTypeMaker types_;
  Plan plan_;
  std::vector<LocatedType> regions_;
};

// Converts the region type so that it fits another trace, which has the same ops in `range`.
RegionType transferred(RegionType type, OpRange range, const Trace& trace) {
  for (std::size_t op = 0; op < type.ops.size(); ++op) {
    type.ops[op].bytes = fresh_bytes(trace, trace.ops[range.first + static_cast<int>(op)]);
  }
  return type;
}

// Converts the plan so that it fits another trace, which has the same ops in all regions.
Plan transferred(const Plan& plan, const Trace& trace, const std::string& trace_sha256) {
  Plan result = plan;
  result.model = trace.model;
  result.dimensions = trace.dimensions;
  result.dtype = trace.dtype;
  result.trace_sha256 = trace_sha256;
  result.types.clear();
  const std::vector<OpRange> ranges = region_ranges(trace, plan);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const RegionType& type = plan.types[static_cast<std::size_t>(plan.regions[i].type)];
    result.regions[i].type = add_once(result.types, transferred(type, ranges[i], trace));
  }
  return result;
}

// The first and the last scope of each region, over all shapes.
using RegionScopes = std::set<std::pair<std::string, std::string>>;

// The ops that one shape runs in regions. Each time a region's first scope opens, an entry begins.
// It holds the path of the scope and the names of the ops until the region ends.
using Streams = std::vector<std::pair<std::string, std::vector<std::string>>>;

Streams streams_of(const RegionScopes& regions, const Trace& trace) {
  Streams streams;
  for (const auto& [first, last] : regions) {
    for (const TracedScope& opened : trace.scopes) {
      if (opened.path != first) continue;
      const auto closed = std::find_if(
          trace.scopes.begin(), trace.scopes.end(), [&, &path = last](const TracedScope& scope) {
            return scope.path == path && scope.first_op >= opened.first_op;
          });
      const OpId end = closed == trace.scopes.end() ? opened.end_op : closed->end_op;
      streams.emplace_back(first, std::vector<std::string>());
      for (const OpId op : IdRange(opened.first_op, end)) {
        streams.back().second.push_back(trace.ops[op].name);
      }
    }
  }
  return streams;
}

Bytes peak_without_checkpointing(const Trace& trace) {
  return StepSimulator(trace, OptimizerKind::kNothing)
      .simulate(Plan{}, Schedule::kWholeRegion)
      .peak_bytes();
}

// Groups the shapes that the engine cannot distinguish. Every shape of a group gets the plan of the
// group's largest shape.
void unite_same_shapes(const std::vector<Trace>& traces, std::vector<Plan>& plans) {
  RegionScopes regions;
  for (const Plan& plan : plans) {
    for (const PlannedRegion& region : plan.regions) {
      regions.emplace(region.first_scope, region.last_scope);
    }
  }
  std::vector<Streams> streams;
  for (const Trace& trace : traces) streams.push_back(streams_of(regions, trace));
  const std::vector<Plan> given = plans;
  for (std::size_t shape = 0; shape < plans.size(); ++shape) {
    std::size_t largest = shape;
    for (std::size_t other = 0; other < plans.size(); ++other) {
      if (other == largest || streams[other] != streams[shape]) continue;
      const Bytes known = peak_without_checkpointing(traces[largest]);
      const Bytes found = peak_without_checkpointing(traces[other]);
      if (found > known || (found == known && other < largest)) largest = other;
    }
    if (largest == shape) continue;
    plans[shape] = transferred(given[largest], traces[shape], given[shape].trace_sha256);
  }
}

std::vector<std::string> names_of_ops(const RegionType& type) {
  std::vector<std::string> names;
  for (const PlannedOp& op : type.ops) names.push_back(op.name);
  return names;
}

// Returns whether the ops of `shorter` are a strict prefix of the ops of `longer`.
bool is_beginning(const LocatedType& shorter, const LocatedType& longer) {
  if (shorter.planned.first_scope != longer.planned.first_scope) return false;
  if (shorter.planned.last_scope == longer.planned.last_scope) return false;
  const std::vector<std::string> names = names_of_ops(shorter.type);
  const std::vector<std::string> others = names_of_ops(longer.type);
  return names.size() < others.size() && std::equal(names.begin(), names.end(), others.begin());
}

// Splits a region into one region per layer, with the same treatments.
std::vector<LocatedType> cut(const LocatedType& region, const Trace& trace) {
  const Policy policy = keep_all();
  const OpTreater treater(policy, trace);
  std::vector<LocatedType> parts;
  std::optional<ScopeId> parent;
  for (const ScopeId id : trace.scopes.ids()) {
    const TracedScope& scope = trace.scopes[id];
    const OpRange range = range_of(scope);
    if (range.first >= range.end || !is_inside(range, region.range)) continue;
    if (parts.empty()) parent = scope.parent;
    if (scope.parent != parent) continue;
    const PlacedRegion placed{{scope.path, scope.path, 0, layers_around(trace, id)}, id, range};
    LocatedType part{placed.planned, range, region.type};
    part.type.ops = treater.treat(placed);
    part.type.demand_steps.clear();
    part.type.stored_inputs = {};
    copy_treatments(region, range, part.type.ops);
    choose_order(trace, range.first, range.end, part.type);
    parts.push_back(std::move(part));
  }
  return parts;
}

// A region of one shape may end where a region of another shape continues after the same ops. The
// engine cannot distinguish these two shapes. Cuts the longer region into its layers. Returns
// whether it cut any region.
bool cut_where_others_end(const std::vector<Trace>& traces, std::vector<Plan>& plans) {
  bool any = false;
  std::vector<LocatedType> all;
  for (std::size_t shape = 0; shape < plans.size(); ++shape) {
    for (LocatedType& region : located(traces[shape], plans[shape])) all.push_back(region);
  }
  for (std::size_t shape = 0; shape < plans.size(); ++shape) {
    std::vector<LocatedType> regions;
    for (const LocatedType& region : located(traces[shape], plans[shape])) {
      const bool is_longer = std::any_of(all.begin(), all.end(), [&](const LocatedType& other) {
        return is_beginning(other, region);
      });
      any |= is_longer;
      const auto parts = is_longer ? cut(region, traces[shape]) : std::vector{region};
      regions.insert(regions.end(), parts.begin(), parts.end());
    }
    put_regions(std::move(regions), plans[shape]);
  }
  return any;
}

bool are_same(const LocatedType& a, const LocatedType& b) {
  return a.planned.first_scope == b.planned.first_scope &&
         a.planned.last_scope == b.planned.last_scope &&
         names_of_ops(a.type) == names_of_ops(b.type);
}

// Two shapes may have the same regions up to a layer that only one of them has. Before that layer,
// the engine cannot tell which shape is running, so the regions get the treatments of the larger
// shape.
void unite_same_beginnings(const std::vector<Trace>& traces, std::vector<Plan>& plans) {
  std::vector<std::vector<LocatedType>> given;
  std::vector<Bytes> peaks;
  for (std::size_t shape = 0; shape < plans.size(); ++shape) {
    given.push_back(located(traces[shape], plans[shape]));
    peaks.push_back(peak_without_checkpointing(traces[shape]));
  }
  for (std::size_t shape = 0; shape < plans.size(); ++shape) {
    std::vector<std::size_t> same;  // shapes whose regions have been the same so far
    for (std::size_t other = 0; other < plans.size(); ++other) same.push_back(other);
    std::vector<LocatedType> regions = given[shape];
    for (std::size_t i = 0; i < regions.size(); ++i) {
      std::erase_if(same, [&](std::size_t other) {
        return i >= given[other].size() || !are_same(given[other][i], given[shape][i]);
      });
      const std::size_t largest =
          *std::max_element(same.begin(), same.end(),
                            [&](std::size_t a, std::size_t b) { return peaks[a] < peaks[b]; });
      regions[i].type = transferred(given[largest][i].type, regions[i].range, traces[shape]);
    }
    put_regions(std::move(regions), plans[shape]);
  }
}

Places places_of(const std::vector<Plan>& plans) {
  Places places;
  for (const Plan& plan : plans) {
    for (const PlannedRegion& region : plan.regions) places.insert(region.first_scope);
  }
  return places;
}

std::vector<std::string> collectives_issued_again(const Plan& plan) {
  std::vector<std::string> issued;
  for (const PlannedRegion& region : plan.regions) {
    for (const PlannedOp& op : plan.types[static_cast<std::size_t>(region.type)].ops) {
      const bool starts = collective_part(op.name) == CollectivePart::kStart;
      if (starts && !op.treatment.is_kept()) issued.push_back(op.name);
    }
  }
  return issued;
}

std::optional<Rejected> check_shapes(const std::vector<Trace>& traces,
                                     const std::vector<Plan>& plans) {
  if (traces.empty() || traces.size() != plans.size()) {
    return Rejected{std::to_string(plans.size()) + " plans for " + std::to_string(traces.size()) +
                    " traces; give at least one trace, and one plan for each"};
  }
  for (std::size_t shape = 0; shape < plans.size(); ++shape) {
    const std::string name = "plan " + std::to_string(shape);
    if (!plans[shape].other_shapes.empty()) {
      return Rejected{name + " has several shapes; give the plans of single shapes"};
    }
    if (plans[shape].trace_sha256 != trace_sha256(traces[shape])) {
      return Rejected{name + " was made for a different trace than trace " + std::to_string(shape) +
                      "; give plans and traces in the same order"};
    }
  }
  return std::nullopt;
}

}  // namespace

std::variant<Plan, Rejected> combine_shapes(const std::vector<Trace>& traces,
                                            const std::vector<Plan>& plans) {
  if (auto rejected = check_shapes(traces, plans)) return *rejected;
  std::vector<Plan> shapes = plans;
  unite_same_shapes(traces, shapes);
  do {
    const Places places = places_of(shapes);
    for (std::size_t shape = 0; shape < shapes.size(); ++shape) {
      shapes[shape] = ShapeCompleter(traces[shape], std::move(shapes[shape])).complete(places);
    }
  } while (cut_where_others_end(traces, shapes));
  unite_same_beginnings(traces, shapes);
  const std::vector<std::string> issued = collectives_issued_again(shapes.front());
  for (std::size_t shape = 1; shape < shapes.size(); ++shape) {
    if (collectives_issued_again(shapes[shape]) == issued) continue;
    return Rejected{"shapes 0 and " + std::to_string(shape) +
                    " would issue different collectives in backward, so ranks that run different "
                    "shapes would wait for each other forever; use policies that keep the results "
                    "of collectives, as keep_collectives(POLICY) does"};
  }
  Plan combined = shapes.front();
  combined.other_shapes.assign(shapes.begin() + 1, shapes.end());
  for (const Plan& plan : plans) {
    combined.hidden = united(combined.hidden, plan.hidden);
    combined.watches_writes |= plan.watches_writes;
  }
  return combined;
}

}  // namespace rematch
