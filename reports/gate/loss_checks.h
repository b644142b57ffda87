// Checks whether two losses are equal: a plain threshold, failures in every tier, and the three
// tiers. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "reports/gate/loss_arms.h"
#include "reports/record/gate.h"
#include "reports/record/point.h"

namespace rematch {

// Compares the largest difference at any step with a plain threshold. Takes the worst of the
// candidate's runs, each against the reference's own run.
CheckRecord check_difference(const LossArm& candidate, const LossArm& reference, double limit);

// Find what fails in every tier, in any run of the candidate: a loss that is not finite, or
// gradients that are all zero or not finite. Absent if nothing fails.
std::optional<CheckRecord> check_finite(const LossArm& candidate);
std::optional<CheckRecord> check_gradients(const LossArm& candidate);

// The first step and tensor whose bits differ. Absent if all bits that both sides recorded are
// equal over the steps that both have.
struct BitDifference {
  int step = 0;
  std::string tensor;
};
std::optional<BitDifference> first_difference(const Steps& left, const Steps& right);

// Tier T0: the same bits at every step. Inconclusive, not failed, if the reference does not repeat
// its own bits.
CheckRecord check_bitwise(const LossArm& candidate, const LossArm& reference);

// The envelope is this factor times the largest difference between two reference runs. The factor
// is 2 for one candidate run and grows by 0.2 each time the number of runs doubles. So the furthest
// of several equal runs leaves the envelope no more often than a single run. See Note [The
// envelope].
double envelope_factor(std::size_t candidate_runs);

// Note [The envelope]
// Tier T1: the candidate is at most envelope_factor times as far from the reference as the
// reference's own runs are from each other. For each candidate run the check takes the distance to
// the nearest reference run, at any step. It compares the largest such distance with
// envelope_factor times the largest difference between two reference runs. It needs three reference
// runs.
//
// The promise is that equal runs fail in at most 0.5 % of gates with three reference runs and in
// 0.3 % with four. Simulations in tests/reports/gate show why the check uses the nearest run and a
// growing factor:
//   with the first reference run:    0.6 % fail with three, under noise that lasts and grows
//   with the farthest reference run: 1.0 % fail with three, under the same noise
//   with the mean of four:           0.35 % fail under a random walk
//   with a constant factor of 2:     four equal runs fail in 0.5 % with three reference runs under
//                                    noise that lasts and grows, in 0.65 % with four under a
//                                    random walk
CheckRecord check_envelope(const LossArm& candidate, const LossArm& reference);

// Tier T2: mean losses differ by less than a margin. For long runs, other devices and other numbers
// of ranks. Runs two one-sided tests at 5 % on the runs' mean losses over the last `window_steps`
// (half of the steps if absent), with at least four runs per arm. The margin is the larger of the
// user's and four standard deviations of a run.
CheckRecord check_equivalence(const LossArm& candidate, const LossArm& reference,
                              std::optional<double> margin, std::optional<int> window_steps);

// Equal losses prove something only if every parameter got a gradient. Absent if each did, or if
// the point did not finish.
std::optional<CheckRecord> check_proof(const PointRecord& point);

// Fails a passed bit check if the point's own parity contradicts it: the parity with `reference`,
// or with a policy that `reference` is equal to. Parity was judged during measurement, and the
// steps do not keep every bit.
void hold_to_parity(CheckRecord& check, const PointRecord& point, const PointRecord& reference);

}  // namespace rematch
