// Is the loss the same: a plain threshold, what fails in every tier, and the three tiers. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "reports/gate/loss_arms.h"
#include "reports/record/gate.h"
#include "reports/record/point.h"

namespace rematch {

// A plain threshold on the largest difference at any step, of any run of the candidate from the
// reference's own.
CheckRecord check_difference(const LossArm& candidate, const LossArm& reference, double limit);

// The failures of every tier, in any run of the candidate: a loss that is not finite, gradients
// that are all zero or not finite. Nothing: fine.
std::optional<CheckRecord> check_finite(const LossArm& candidate);
std::optional<CheckRecord> check_gradients(const LossArm& candidate);

// Tier T0 of the gate: the same bits at every step. Pure.

// The first step and tensor whose bits differ; nothing if those that both recorded are equal over
// the steps that both have.
struct BitDifference {
  int step = 0;
  std::string tensor;
};
std::optional<BitDifference> first_difference(const Steps& left, const Steps& right);

// Refused, not failed, where the reference does not repeat its own bits.
CheckRecord check_bitwise(const LossArm& candidate, const LossArm& reference);

// Tier T1 of the gate: no further from the reference than its own runs are apart, twice. Pure.

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

// Tier T2 of the gate: mean losses that differ by less than a margin, for long runs, other devices
// and other numbers of ranks. Pure.

// Two one-sided tests at 5 % on the runs' mean losses over the last `window_steps` (half of the
// steps if absent), four runs an arm at least. The margin is the user's or four standard
// deviations of a run, whichever is wider.
CheckRecord check_equivalence(const LossArm& candidate, const LossArm& reference,
                              std::optional<double> margin, std::optional<int> window_steps);

// Adds a point's own parity, judged where it was measured, to what its recorded steps say.
// Pure.

// Equal losses are a proof only if every parameter got a gradient. Nothing: each did, or the point
// did not finish.
std::optional<CheckRecord> check_proof(const PointRecord& point);

// Fails a check of bits that passed where the point's parity with `reference`, or with what
// `reference` itself is equal to, says otherwise: not every bit is kept in the steps.
void hold_to_parity(CheckRecord& check, const PointRecord& point, const PointRecord& reference);

}  // namespace rematch
