// All ways worth having to run the spans of a trace: which regions, and what each keeps. These
// are the options that layer mixing chooses from.
#pragma once

#include <vector>

#include "policies/plan/plan.h"
#include "policies/search/mix/layer_mix.h"
#include "policies/search/region/span_pricing.h"
#include "policies/search/region/spans.h"

namespace rematch {

// An option with what a plan needs to know of it.
struct SpanOption {
  LayerOption figures;
  std::vector<PickedRegion> regions;  // none: autograd keeps what it saves
};

// Gaps of the options: for each way to run a block there is an option that holds
// no more, is slower by at most `time` and has a transient larger by at most `transient`.
struct OptionGap {
  std::chrono::nanoseconds time{};
  Bytes transient;
};

struct SpanOptions {
  std::vector<std::vector<SpanOption>> lists;  // by kind
  // By kind, over all save sets of all cuts. Segments are what they are: see README.md.
  std::vector<OptionGap> gaps;
};

SpanOptions make_options(const SearchedTrace& searched);

// The options as a problem of layer mixing, exact for those that there are.
MixProblem mix_problem(const SpanMap& map, const SpanOptions& options);
// With options better by their gaps, so that whatever way there is to run a block, cut or not, some
// option is no worse: no plan is better than the best mix of these.
MixProblem relaxed_mix_problem(const SpanMap& map, const SpanOptions& options);

}  // namespace rematch
