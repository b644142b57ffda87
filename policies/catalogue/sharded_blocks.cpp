#include "policies/catalogue/sharded_blocks.h"

#include <algorithm>

#include "policies/trace/collective.h"

namespace rematch {
namespace {

OpRange range_of(const Trace& trace, const TracedBlock& block) {
  const TracedScope& scope = trace.scopes[block.scope];
  return {scope.first_op, scope.end_op};
}

bool overlap(const std::vector<OpRange>& regions, OpRange range) {
  return std::any_of(regions.begin(), regions.end(), [range](OpRange region) {
    return region.first < range.end && range.first < region.end;
  });
}

}  // namespace

Policy gather_again() {
  Policy policy;
  policy.inverse = true;
  return policy;
}

std::vector<PlacedRegion> blocks_that_only_gather(const Policy& policy, const Trace& trace,
                                                  const std::vector<PlacedRegion>& placed) {
  std::vector<PlacedRegion> regions;
  if (!policy.reshard_after_forward) return regions;
  std::vector<OpRange> ranges;
  for (const PlacedRegion& region : placed) ranges.push_back(region.range);
  for (const TracedBlock& block : trace.blocks) {
    const OpRange range = range_of(trace, block);
    if (overlap(ranges, range) || parameter_gathers(trace, block).empty()) continue;
    const std::string& path = trace.scopes[block.scope].path;
    regions.push_back({{path, path, 0, {block.index}}, block.scope, range});
  }
  return regions;
}

bool holds_gathers(const Policy& policy, const Trace& trace, const std::vector<OpRange>& regions) {
  if (!policy.reshard_after_forward) return false;
  return std::any_of(trace.blocks.begin(), trace.blocks.end(), [&](const TracedBlock& block) {
    const OpRange range = range_of(trace, block);
    if (!overlap(regions, range)) return false;
    const std::vector<OpId> gathers = parameter_gathers(trace, block);
    return std::any_of(gathers.begin(), gathers.end(), [&](OpId op) {
      return !overlap(regions, {op, op + 1});
    });
  });
}

}  // namespace rematch
