// A plan with one region a block, to fill in what each saves.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "policies/plan/plan.h"
#include "policies/predict/region/region.h"
#include "policies/trace/trace.h"

namespace rematch {

struct BlockRegions {
  Plan plan;  // every block recomputed
  std::vector<OpRange> ranges;
};

// Rejected: the model has no blocks.
std::variant<BlockRegions, Rejected> block_regions(const Trace& trace);

// The plan under another name in which blocks save what `saves` says, by block and op. Blocks
// without an entry are no regions: autograd keeps what it saves.
struct BlockSaves {
  std::size_t block = 0;
  std::vector<bool> saves;  // by op of its range
};
Plan plan_with_saves(const Trace& trace, const BlockRegions& blocks,
                     const std::vector<BlockSaves>& saves, std::string name);

// "0.4": a budget as a planner's name has it.
std::string without_zeros(double number);

}  // namespace rematch
