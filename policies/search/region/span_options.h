// Finds all useful ways to run the spans of a trace: which regions they have, and what each region
// keeps. Layer mixing chooses from these options.
#pragma once

#include <vector>

#include "policies/plan/plan.h"
#include "policies/search/mix/layer_mix.h"
#include "policies/search/region/span_pricing.h"
#include "policies/search/region/spans.h"

namespace rematch {

// An option for a span: its figures for layer mixing, and its regions, from which a plan is made.
struct SpanOption {
  LayerOption figures;
  // empty: the span has no region, so autograd keeps all its saved tensors
  std::vector<RegionSaves> regions;
};

// Bounds how much better an omitted option can be. An omitted option is a way to run a block that
// is not in the list. For each omitted option, the list has an option that holds no more bytes. The
// listed option is slower by at most `time`, and its transient is larger by at most `transient`.
struct OptionGap {
  std::chrono::nanoseconds time{};
  Bytes transient;
};

struct SpanOptions {
  std::vector<std::vector<SpanOption>> lists;  // indexed by kind
  // The optimality gap of each kind. It covers all save sets of all cuts, but not segments: see
  // README.md.
  std::vector<OptionGap> gaps;
};

SpanOptions make_options(const SearchedTrace& searched);

// Returns the options as a problem of layer mixing, without any approximation.
MixProblem mix_problem(const SpanMap& map, const SpanOptions& options);
// Returns a problem of layer mixing in which each option is improved by its gap. For every way to
// run a block, cut or not, the problem then has an option that is at least as good. No plan is
// therefore better than the best mix of these options.
MixProblem relaxed_mix_problem(const SpanMap& map, const SpanOptions& options);

}  // namespace rematch
