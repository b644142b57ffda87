// The rules that a person can type for a group of layers, priced for every kind of block.
#pragma once

#include <cstddef>

#include "policies/search/region/span_options.h"
#include "policies/search/region/spans.h"
#include "policies/trace/trace.h"

namespace rematch {

// Lists of options in which one index is one rule, whatever the kind of block: the first keeps
// everything, the second recomputes everything.
struct SimpleRules {
  SpanOptions options;
  // So many rules, the first ones, are worth a place beside others: none is worse than another in
  // bytes held, transient and time of every kind. The rest are for all layers alone.
  int num_paired = 0;
};

SimpleRules simple_rules(const SearchedTrace& searched, std::size_t most_paired);

}  // namespace rematch
