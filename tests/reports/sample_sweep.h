// Made-up sweeps for the tests of their pages.
#pragma once

#include "reports/record/report.h"

namespace rematch::testing {

// Two models. llama_small: tokens 8, 16, 32 with kv_tokens twice as many, batch 1 and 2, seeds 0
// and 1; one comparison skipped, one whose `none` ran out of memory, one point with other bits.
// wan_small: one shape, and a comparison that failed.
Report telling_sweep();

// So many comparisons of 8 policies, over five models.
Report large_sweep(int num_comparisons);

}  // namespace rematch::testing
