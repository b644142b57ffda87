// The logistic function, for CPU kernels. Include this header only where lanes.h may be included.
#pragma once

#include "kernels/op/lanes.h"

namespace rematch::kernels::REMATCH_CAPABILITY {

// exp_u20 is several times as fast as exp; its error is at most 20 units in the last place. Its
// result never overflows to infinity, so for large negative x the sigmoid is about 1e-38 instead of
// 0.
template <typename Wide>
Wide sigmoid(const Wide& x) {
  const Wide one(1);
  return one / (one + x.neg().exp_u20());
}

}  // namespace rematch::kernels::REMATCH_CAPABILITY
