// Is the loss the same, apart from the gate's tiers: a plain threshold, and what fails in every
// tier. Pure.
#pragma once

#include <optional>

#include "reports/gate/loss_arms.h"
#include "reports/record/gate.h"

namespace rematch {

// A plain threshold on the largest difference at any step, of any run of the candidate from the
// reference's own.
CheckRecord check_difference(const LossArm& candidate, const LossArm& reference, double limit);

// The failures of every tier, in any run of the candidate: a loss that is not finite, gradients
// that are all zero or not finite. Nothing: fine.
std::optional<CheckRecord> check_finite(const LossArm& candidate);
std::optional<CheckRecord> check_gradients(const LossArm& candidate);

}  // namespace rematch
