// Does the loss of a reference fall, beyond its noise? Where it does not, a run that learns nothing
// has the same curve, so an equal curve is no evidence. Pure.
#pragma once

#include <string>

#include "reports/gate/loss_arms.h"

namespace rematch {

// Note [A loss that falls]
// Works on the mean of the reference's runs at every step. Of the splits after 1, 2, 4, ... steps
// from either end and in the middle, takes the one that stands out most: `fall` is the mean loss
// before it less the mean loss after it. The loss falls if
//   fall > allowed, the difference that the check lets a candidate have, and, from 8 steps on,
//   fall > 4 s sqrt(1/before + 1/after), where s is the noise from step to step: the root mean
//   square of a loss less the mean of its two neighbours, times sqrt(2/3). A line has no such
//   noise.
// Source of s: Gasser, Sroka and Jennen-Steinmetz, Residual variance and residual pattern in
// nonlinear regression, Biometrika 73, 1986. The factor is from simulation in tests/reports/gate:
// a loss that only scatters seems to fall in at most 4 % of references. With fewer steps one steep
// fall cannot be told from scatter, so `allowed` alone counts.

// Why equal curves prove nothing, and what to do; empty: the loss falls. Every run has the steps of
// the first one, one at least, and finite losses.
std::string explain_no_fall(const LossArm& reference, double allowed);

}  // namespace rematch
