// Makes plans with one region per block from the ops that a planner saves in each block.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "policies/base/rejected.h"
#include "policies/plan/plan.h"
#include "policies/predict/region/region.h"
#include "policies/trace/trace.h"

namespace rematch {

struct BlockRegions {
  Plan plan;  // the plan that recomputes every block
  std::vector<OpRange> ranges;
};

// Returns Rejected if the model has no blocks.
std::variant<BlockRegions, Rejected> block_regions(const Trace& trace);

// The ops that a planner saves in one block.
struct BlockSaves {
  std::size_t block = 0;
  std::vector<bool> saves;  // indexed by op of the block
};
// Returns a copy of blocks.plan with this name, in which each block saves the ops in `saves`. A
// block without an entry is not checkpointed.
Plan plan_with_saves(const Trace& trace, const BlockRegions& blocks,
                     const std::vector<BlockSaves>& saves, std::string name);

// Formats a budget for a planner's name: "0.4".
std::string without_zeros(double number);

}  // namespace rematch
