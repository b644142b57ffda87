// Checks whether two losses are equal: by a plain threshold, and in three tiers. Also finds
// failures that count in every tier. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "reports/gate/loss_arms.h"
#include "reports/record/gate.h"
#include "reports/record/point.h"

namespace rematch {

// Requires that each run of the candidate differs from the reference's first run by at most a
// threshold at every step.
CheckRecord check_difference(const LossArm& candidate, const LossArm& reference, double limit);

// Finds failures of the candidate's runs that count in every tier: a loss that is not finite, or
// gradients that are all zero or not finite. Absent if nothing fails.
std::optional<CheckRecord> check_finite(const LossArm& candidate);
std::optional<CheckRecord> check_gradients(const LossArm& candidate);

// Returns the first step and tensor whose bits differ. Absent if all recorded bits are equal.
// Compares only steps and bits that both runs contain.
struct BitDifference {
  int step = 0;
  std::string tensor;
};
std::optional<BitDifference> first_difference(const Steps& left, const Steps& right);

// Tier T0: the bits are equal at every step. The verdict is inconclusive, not failed, if the
// reference does not repeat its own bits.
CheckRecord check_bitwise(const LossArm& candidate, const LossArm& reference);

// The envelope is this factor times the largest difference between two reference runs. The factor
// is 2 for one candidate run, and grows by 0.2 each time the number of candidate runs doubles,
// because the largest distance grows with the number of runs. See Note [The envelope].
double envelope_factor(std::size_t candidate_runs);

// Note [The envelope] Tier T1 takes the distance of each candidate run to the nearest reference
// run, at any step. The largest of these distances must be at most envelope_factor times the
// largest difference between two reference runs. The check needs three reference runs.
//
// If candidate and reference differ only by noise, the check fails in at most 0.5 % of gates with
// three reference runs and in 0.3 % with four. The simulations in tests/reports/gate also tried
// other rules:
// - The distance to the first of three reference runs fails in 0.6 % of gates, if noise persists
//   and grows.
// - The distance to the farthest of three reference runs fails in 1.0 %, with the same noise.
// - The distance to the mean of four reference runs fails in 0.35 %, if noise is a random walk.
// - A constant factor of 2 with four candidate runs fails in 0.5 % with three reference runs, if
//   noise persists and grows, and in 0.65 % with four, if noise is a random walk.
CheckRecord check_envelope(const LossArm& candidate, const LossArm& reference);

// Tier T2: mean losses differ by less than a margin. Use this tier for long runs, and to compare
// different devices or numbers of ranks. The check makes two one-sided tests at 5 % on the runs'
// mean losses over the last `window_steps` (if absent, half of the steps). Each arm needs at least
// four runs. The margin is the user's margin, or four standard deviations of a run's mean loss if
// that is larger.
CheckRecord check_equivalence(const LossArm& candidate, const LossArm& reference,
                              std::optional<double> margin, std::optional<int> window_steps);

// Checks that every parameter got a gradient, because otherwise equal losses prove nothing. Absent
// if every parameter got a gradient, or if the point did not finish.
std::optional<CheckRecord> check_proof(const PointRecord& point);

// Turns a passed bit check into a failed check if the point's parity record contradicts it. The
// parity record must refer to `reference`, or to an equal policy. A parity record covers every bit,
// while the steps store only some bits.
void hold_to_parity(CheckRecord& check, const PointRecord& point, const PointRecord& reference);

}  // namespace rematch
