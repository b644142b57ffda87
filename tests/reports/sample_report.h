// Made-up points and reports for all tests that read reports. The figures are easy to compute with.
#pragma once

#include <string>

#include "reports/record/report.h"

namespace rematch::testing {

// A finished point of wan_small on the CPU with every member filled in. It has 10 steps with 8
// attention forwards each. Its peak is 100 MiB in the backward of blocks.7, including 40 MiB of
// saved activations.
PointRecord sample_point(const std::string& policy = "none",
                         Schedule schedule = Schedule::kOnDemand);

// Like sample_point, for another policy. Each step recomputes `recomputed` attention forwards and
// twice as many matmuls. Saved activations shrink by `less`. A step takes `ratio` times the step
// time of policy `none`.
PointRecord sample_recomputing(const std::string& policy, std::int64_t recomputed, Bytes less,
                               double ratio, Schedule schedule = Schedule::kOnDemand);

// A point that ran out of memory after it reached 90 MiB.
PointRecord sample_oom(const std::string& policy);

// Like sample_point, on two ranks of a tensor-parallel model. A step has 32 all-reduces of 1 MiB
// each, and recompute issues `recomputed` more. Rank 1 holds 1 MiB more than rank 0.
PointRecord sample_on_ranks(const std::string& policy, std::int64_t recomputed);

// Sets a step's loss, as a number and as its bits.
void set_loss(StepRecord& step, float loss);

Provenance sample_provenance();

}  // namespace rematch::testing
