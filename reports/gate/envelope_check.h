// Tier T1 of the gate: no further from the reference than its own runs are apart, twice. Pure.
#pragma once

#include "reports/gate/loss_arms.h"
#include "reports/record/gate.h"

namespace rematch {

// Of what two runs of the reference differ by.
inline constexpr double kEnvelopeFactor = 2;

// Note [The envelope]
// The candidate's largest difference at any step from the nearest reference run, against twice the
// largest difference between two reference runs, three at least. Nearest, since the promise is that
// equal runs fail in at most 0.5 % of gates with three reference runs and in 0.3 % with four: held
// to the first reference run they fail in 0.6 % with three under noise that lasts and grows, to the
// farthest in 1.0 %, to the mean of four in 0.35 % under a random walk. Simulated in
// tests/reports/gate.
CheckRecord check_envelope(const LossArm& candidate, const LossArm& reference);

}  // namespace rematch
