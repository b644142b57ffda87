// Tier T1 of the gate: no further from the reference than its own runs are apart, twice. Pure.
#pragma once

#include <cstddef>

#include "reports/gate/loss_arms.h"
#include "reports/record/gate.h"

namespace rematch {

// How many times what two runs of the reference differ by a candidate may differ: 2 for one run,
// and 0.2 more each time that its runs double, so that the furthest of several equal runs is
// outside no more often than one. Note [The envelope]
double envelope_factor(std::size_t candidate_runs);

// Note [The envelope]
// Takes the candidate's run that is furthest, at any step, from the reference run nearest to it,
// and holds it to envelope_factor times the largest difference between two reference runs, three at
// least. Nearest, since the promise is that equal runs fail in at most 0.5 % of gates with three
// reference runs and in 0.3 % with four: held to the first reference run they fail in 0.6 % with
// three under noise that lasts and grows, to the farthest in 1.0 %, to the mean of four in 0.35 %
// under a random walk. The factor grows for the same reason: at 2 throughout, four equal runs fail
// in 0.5 % with three reference runs under noise that lasts and grows, in 0.65 % with four under a
// random walk. Simulated in tests/reports/gate.
CheckRecord check_envelope(const LossArm& candidate, const LossArm& reference);

}  // namespace rematch
