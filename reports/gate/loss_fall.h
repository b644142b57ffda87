// Checks whether a reference's loss falls beyond its noise. If the loss does not fall, a run that
// learns nothing has the same curve, so an equal curve proves nothing. Pure.
#pragma once

#include <string>

#include "reports/gate/loss_arms.h"

namespace rematch {

// Note [A loss that falls] Works on the mean of the reference's runs at every step. Considers
// splits after 1, 2, 4, ... steps from either end and in the middle, and takes the split with the
// clearest fall. `fall` is the mean loss before the split minus the mean loss after it. The loss
// falls if fall > allowed, the difference that the check allows, and, from 8 steps on, fall > 4 s
// sqrt(1/before + 1/after), where s is the noise from step to step: the root mean square of a loss
// minus the mean of its two neighbours, times sqrt(2/3). A line has no such noise. Source of s:
// Gasser, Sroka and Jennen-Steinmetz, Residual variance and residual pattern in nonlinear
// regression, Biometrika 73, 1986. The factor 4 comes from simulation in tests/reports/gate: a loss
// that only scatters seems to fall in at most 4 % of references. With fewer than 8 steps one steep
// fall looks like scatter, so only `allowed` counts.

// Returns why equal curves prove nothing and what to do, or "" if the loss falls. All runs must
// have the same steps, at least one, and finite losses.
std::string explain_no_fall(const LossArm& reference, double allowed);

}  // namespace rematch
