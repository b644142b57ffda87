// The options of a trace's spans as a problem of layer mixing.
#pragma once

#include "policies/search/mix/layer_mix.h"
#include "policies/search/region/span_options.h"
#include "policies/search/region/spans.h"

namespace rematch {

// Exact for the options that there are.
MixProblem mix_problem(const SpanMap& map, const SpanOptions& options);
// With options better by their gaps, so that whatever way there is to run a block, cut or not, some
// option is no worse: no plan is better than the best mix of these.
MixProblem relaxed_mix_problem(const SpanMap& map, const SpanOptions& options);

}  // namespace rematch
