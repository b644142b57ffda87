// Synthetic sweeps for the tests of their pages.
#pragma once

#include "reports/record/report.h"

namespace rematch::testing {

// Two models. llama_small has tokens 8, 16, 32 with twice as many kv_tokens, batch 1 and 2, and
// seeds 0 and 1. One comparison of llama_small was skipped, another has a policy `none` that ran
// out of memory, and one point has different bits. wan_small has one comparison that was
// measured and one that failed.
Report representative_sweep();

// A sweep of this many comparisons of 8 policies, over five models.
Report large_sweep(int num_comparisons);

}  // namespace rematch::testing
