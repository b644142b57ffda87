// Finds all useful ways to run the spans of a trace: which regions they have, and what each region
// keeps. Layer mixing chooses from these options.
#pragma once

#include <vector>

#include "policies/plan/plan.h"
#include "policies/search/mix/layer_mix.h"
#include "policies/search/region/span_pricing.h"
#include "policies/search/region/spans.h"

namespace rematch {

// An option for a span: its figures for layer mixing, and its regions for the plan.
struct SpanOption {
  LayerOption figures;
  // empty: the span has no region, so autograd keeps all its saved tensors
  std::vector<RegionSaves> regions;
};

// Bounds how much better an omitted option can be. For each omitted option, the list has an option
// that holds at most the same bytes. That option is slower by at most `time`, and its transient is
// higher by at most `transient`.
struct OptionGap {
  std::chrono::nanoseconds time{};
  Bytes transient;
};

struct SpanOptions {
  std::vector<std::vector<SpanOption>> lists;  // indexed by kind
  // The gap of each kind. Ignores omitted segments: see README.md.
  std::vector<OptionGap> gaps;
};

SpanOptions make_options(const SearchedTrace& searched);

// Returns the options as a problem of layer mixing, without any approximation.
MixProblem mix_problem(const SpanMap& map, const SpanOptions& options);
// Returns a problem of layer mixing in which each option is improved by its gap. The best mix of
// these options is therefore at least as good as every plan without segments.
MixProblem relaxed_mix_problem(const SpanMap& map, const SpanOptions& options);

}  // namespace rematch
