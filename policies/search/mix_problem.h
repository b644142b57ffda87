// The options of a trace's stretches as a problem of layer mixing. Inside this folder.
#pragma once

#include "policies/search/layer_mix.h"
#include "policies/search/stretch_options.h"
#include "policies/search/stretches.h"

namespace rematch {

MixProblem mix_problem(const StretchMap& map, const StretchOptions& options);

}  // namespace rematch
