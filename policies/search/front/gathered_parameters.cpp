#include "policies/search/front/gathered_parameters.h"

#include <algorithm>

#include "policies/predict/region/trace_index.h"
#include "policies/trace/collective.h"

namespace rematch {

GatheredParameters::GatheredParameters(const Plan& plan, const Trace& trace)
    : plan_(plan), trace_(trace), has_gathers_(blocks_gather_parameters(trace)) {
  if (has_gathers_) ranges_ = region_ranges(trace, plan);
}

bool GatheredParameters::is_gather(std::size_t region, std::size_t op) const {
  if (!has_gathers_) return false;
  const OpId id = ranges_[region].first + static_cast<int>(op);
  return is_parameter_gather(trace_, trace_.ops[id]);
}

OpRange GatheredParameters::range_of(const TracedBlock& block) const {
  const TracedScope& scope = trace_.scopes[block.scope];
  return {scope.first_op, scope.end_op};
}

bool GatheredParameters::is_held(OpId gather) const {
  for (std::size_t region = 0; region < ranges_.size(); ++region) {
    const OpRange range = ranges_[region];
    if (gather < range.first || range.end <= gather) continue;
    const RegionType& type = plan_.types[static_cast<std::size_t>(plan_.regions[region].type)];
    const auto op = static_cast<std::size_t>(gather - range.first);
    return type.ops[op].treatment.is_kept();
  }
  return true;
}

bool GatheredParameters::are_held(const TracedBlock& block) const {
  const std::vector<OpId> gathers = parameter_gathers(trace_, block);
  return std::any_of(gathers.begin(), gathers.end(), [this](OpId op) { return is_held(op); });
}

bool GatheredParameters::are_all_that_is_dropped(const TracedBlock& block) {
  if (!has_gathers_) return false;
  const auto found = std::find(ranges_.begin(), ranges_.end(), range_of(block));
  if (found == ranges_.end()) return false;
  const int type = plan_.regions[static_cast<std::size_t>(found - ranges_.begin())].type;
  const auto [known, is_new] = runs_gathers_alone_.try_emplace(type);
  if (is_new)
    known->second = runs_gathers_alone(*found, plan_.types[static_cast<std::size_t>(type)]);
  return known->second;
}

bool GatheredParameters::runs_gathers_alone(OpRange range, const RegionType& type) const {
  const RegionGraph graph = make_region_graph(trace_, range);
  std::vector<RegionUse> roots;
  for (const RegionSlot& slot : graph.slots) {
    if (!slot.is_dropped && can_be_recomputed(graph, slot.use)) roots.push_back(slot.use);
  }
  const std::vector<bool> executed = closure_of(graph, kept_values(graph, type.ops), roots);
  bool some_gather = false;
  for (std::size_t i = 0; i < executed.size(); ++i) {
    if (!executed[i]) continue;
    const TracedOp& op = trace_.ops[range.first + static_cast<int>(i)];
    const bool is_gather = is_parameter_gather(trace_, op);
    some_gather |= is_gather;
    if (!is_gather && !op.is_view && collective_part(op.name) != CollectivePart::kWait)
      return false;
  }
  return some_gather;
}

}  // namespace rematch
