// Made-up points and reports for the tests of everything that reads reports. The figures are
// chosen to be added up by hand, not measured.
#pragma once

#include <string>

#include "reports/record/report.h"

namespace rematch::testing {

// A finished point of wan_small on the CPU with every part filled in: 10 steps, 8 attention
// forwards each, a peak of 100 MiB in the backward of blocks.7, of which 40 saved activations.
PointRecord sample_point(const std::string& policy = "none",
                         Schedule schedule = Schedule::kOnDemand);

// The same for another policy: `recomputed` attention forwards and twice as many matmuls a step
// are recomputed, saved activations shrink by `less`, a step takes `ratio` times none's.
PointRecord sample_recomputing(const std::string& policy, std::int64_t recomputed, Bytes less,
                               double ratio, Schedule schedule = Schedule::kOnDemand);

// A point that ran out of memory after having reached 90 MiB.
PointRecord sample_oom(const std::string& policy);

// The same on two ranks of a tensor parallel model: 16 all-reduces in a step's forward and
// backward, and `recomputed` more of 1 MiB each. Rank 1 holds 1 MiB more than rank 0.
PointRecord sample_on_ranks(const std::string& policy, std::int64_t recomputed);

// A loss of a step as a number and as its bits.
void set_loss(StepRecord& step, float loss);

Provenance sample_provenance();

}  // namespace rematch::testing
