// Lists the rules that a person can type for a group of layers, priced for every kind of block.
#pragma once

#include <cstddef>

#include "policies/search/region/span_options.h"
#include "policies/search/region/spans.h"
#include "policies/trace/trace.h"

namespace rematch {

// The rules, as one list of options for each kind of block. An index refers to the same rule in all
// lists. The first rule keeps everything, and the second rule recomputes everything.
struct SimpleRules {
  SpanOptions options;
  // The number of rules, counted from the first, that are worth combining with others. No other
  // rule beats such a rule in held bytes, transient and time for every kind of block. The remaining
  // rules are only worth applying to all layers.
  int num_paired = 0;
};

SimpleRules simple_rules(const SearchedTrace& searched, std::size_t most_paired);

}  // namespace rematch
