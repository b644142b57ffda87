#include "policies/planners/block_regions.h"

#include <algorithm>
#include <utility>

#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "policies/predict/region/order.h"
#include "policies/predict/region/trace_index.h"

namespace rematch {

std::variant<BlockRegions, Rejected> block_regions(const Trace& trace) {
  auto full = resolve(full_policy(), trace, NoEffect::kAllow);
  if (auto* rejected = std::get_if<Rejected>(&full)) return std::move(*rejected);
  BlockRegions blocks{std::get<Plan>(std::move(full)), {}};
  blocks.ranges = region_ranges(trace, blocks.plan);
  return blocks;
}

Plan plan_with_saves(const Trace& trace, const BlockRegions& blocks,
                     const std::vector<BlockSaves>& saves, std::string name) {
  Plan plan = blocks.plan;
  plan.policy = std::move(name);
  plan.types.clear();
  plan.regions.clear();
  for (const BlockSaves& block : saves) {
    PlannedRegion region = blocks.plan.regions[block.block];
    RegionType type = blocks.plan.types[region.type];
    for (std::size_t op = 0; op < type.ops.size(); ++op) {
      if (!block.saves[op]) continue;
      type.ops[op].treatment = Treatment::kSave;
      type.ops[op].reason = "chosen by the planner";
    }
    const OpRange range = blocks.ranges[block.block];
    choose_order(trace, range.first, range.end, type);
    const auto same = std::find(plan.types.begin(), plan.types.end(), type);
    region.type = static_cast<int>(same - plan.types.begin());
    if (same == plan.types.end()) plan.types.push_back(std::move(type));
    plan.regions.push_back(std::move(region));
  }
  return plan;
}

std::string without_zeros(double number) {
  std::string text = std::to_string(number);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

}  // namespace rematch
