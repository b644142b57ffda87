// All ways worth having to run one block alone: left to autograd, as one region, or cut into
// regions at scopes inside it.
#pragma once

#include <vector>

#include "policies/search/region/block_cuts.h"
#include "policies/search/region/span_options.h"

namespace rematch {

struct BlockOptions {
  std::vector<SpanOption> options;
  std::vector<SpanOption> as_one_region;  // those alone that no other of its kind beats
  std::vector<PlayedRegion> whole;        // the same, with those that leaving it to autograd beats
  OptionGap gap;
};

BlockOptions block_options(const SearchedTrace& searched, int span);

}  // namespace rematch
