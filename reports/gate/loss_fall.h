// Checks whether a reference's loss falls by more than its noise. If the loss does not fall, even a
// run that learns nothing has an equal curve. Pure.
#pragma once

#include <string>

#include "reports/gate/loss_arms.h"

namespace rematch {

// Note [A loss that falls]
// The check averages the losses of the reference's runs at each step. It splits the resulting curve
// in the middle, and after 1, 2, 4, ... steps from either end. It uses the split with the clearest
// fall. `fall` is the mean loss before the split minus the mean loss after it. The loss falls if
//   fall > allowed, the largest difference that the check allows, and
//   fall > 4 s sqrt(1/before + 1/after), if the curve has at least 8 steps.
// `before` and `after` are the numbers of steps on the two sides of the split. s is the noise from
// step to step: sqrt(2/3) times the root mean square of the difference between a loss and the mean
// of its two neighbours. If the losses are on a line, s is 0. Source of s: Gasser, Sroka and
// Jennen-Steinmetz, Residual variance and residual pattern in nonlinear regression, Biometrika 73,
// 1986. The factor 4 comes from simulations in tests/reports/gate: with this factor, a loss that is
// only noise seems to fall in at most 4 % of references. With fewer than 8 steps, one steep fall
// looks like noise, so only `allowed` counts.

// Returns why equal curves prove nothing and what to do, or "" if the loss falls. All runs must
// have the same steps, at least one, and finite losses.
std::string explain_no_fall(const LossArm& reference, double allowed);

}  // namespace rematch
