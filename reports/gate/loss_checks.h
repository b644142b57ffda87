// Is the loss the same: the tiers of the gate, on the steps of a point and of the reference's runs.
// Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/record/gate.h"

namespace rematch {

using Steps = std::vector<StepRecord>;

// One side of a loss check: the same point, run once or several times.
struct LossArm {
  std::vector<Steps> runs;  // the point's own first
  std::string policy;
  bool deterministic = true;
};

// The first step and tensor whose bits differ; nothing if those that both recorded are equal over
// the steps that both have.
struct BitDifference {
  int step = 0;
  std::string tensor;
};
std::optional<BitDifference> first_difference(const Steps& left, const Steps& right);

// T0. Refused, not failed, where the reference does not repeat its own bits.
CheckRecord check_bitwise(const LossArm& candidate, const LossArm& reference);

// T1. Note [The envelope]
// The candidate's largest difference at any step from the nearest reference run, against twice the
// largest difference between two reference runs, three at least. Nearest, since the promise is that
// equal runs fail in at most 0.5 % of gates with three reference runs and in 0.3 % with four: held
// to the first reference run they fail in 0.6 % with three under noise that lasts and grows, to the
// farthest in 1.0 %, to the mean of four in 0.35 % under a random walk. Simulated in
// tests/reports/gate.
CheckRecord check_envelope(const LossArm& candidate, const LossArm& reference);

// T2. Two one-sided tests at 5 % on the runs' mean losses over the last `window_steps` (half of the
// steps if absent), four runs an arm at least. The margin is the user's or four standard
// deviations of a run, whichever is wider.
CheckRecord check_equivalence(const LossArm& candidate, const LossArm& reference,
                              std::optional<double> margin, std::optional<int> window_steps);

// A plain threshold on the largest difference at any step.
CheckRecord check_difference(const LossArm& candidate, const LossArm& reference, double limit);

// What fails in every tier, in whichever run of the candidate: a loss that is not finite, gradients
// that are all zero. Nothing: fine.
std::optional<CheckRecord> check_finite(const LossArm& candidate);
std::optional<CheckRecord> check_gradients(const LossArm& candidate);

// The largest difference between any two runs at any step; absent: one run.
std::optional<double> largest_difference(const std::vector<Steps>& runs);

}  // namespace rematch
