// Finds all useful ways to run the spans of a trace: which regions, and what each keeps. Layer
// mixing chooses from these options.
#pragma once

#include <vector>

#include "policies/plan/plan.h"
#include "policies/search/mix/layer_mix.h"
#include "policies/search/region/span_pricing.h"
#include "policies/search/region/spans.h"

namespace rematch {

// An option, and what a plan needs to know about it.
struct SpanOption {
  LayerOption figures;
  std::vector<PickedRegion> regions;  // empty: autograd keeps what it saves
};

// Bounds how good a missing option can be. For each way to run a block, some option comes close: it
// holds no more, is slower by at most `time`, and its transient is larger by at most `transient`.
struct OptionGap {
  std::chrono::nanoseconds time{};
  Bytes transient;
};

struct SpanOptions {
  std::vector<std::vector<SpanOption>> lists;  // indexed by kind
  // The gaps of each kind, over all save sets of all cuts. They do not cover segments: see
  // README.md.
  std::vector<OptionGap> gaps;
};

SpanOptions make_options(const SearchedTrace& searched);

// Returns the options as a problem of layer mixing. It is exact for the given options.
MixProblem mix_problem(const SpanMap& map, const SpanOptions& options);
// Returns the problem with each option improved by its gap. Every way to run a block, cut or not,
// then has an option that is no worse. No plan is therefore better than the best mix of these.
MixProblem relaxed_mix_problem(const SpanMap& map, const SpanOptions& options);

}  // namespace rematch
