// Finds all useful ways to run a single block: left to autograd, as one region, or cut into regions
// at scopes inside it.
#pragma once

#include <vector>

#include "policies/search/region/block_cuts.h"
#include "policies/search/region/span_options.h"

namespace rematch {

struct BlockOptions {
  std::vector<SpanOption> options;
  // undominated options that make the block one region
  std::vector<SpanOption> as_one_region;
  // Options of a region that covers the whole block. Includes options that are worse than a block
  // without regions.
  std::vector<RegionOption> whole;
  OptionGap gap;
};

BlockOptions block_options(const SearchedTrace& searched, int span);

}  // namespace rematch
