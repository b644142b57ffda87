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
  // The first num_paired rules are combined with each other. The remaining rules are only applied
  // to all layers, because another rule beats them in held bytes, transient and time.
  int num_paired = 0;
};

SimpleRules simple_rules(const SearchedTrace& searched, std::size_t most_paired);

}  // namespace rematch
