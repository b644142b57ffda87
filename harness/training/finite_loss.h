// A loss that is not finite: whatever it was compared with, the point is of no use.
#pragma once

#include <cstdint>
#include <stdexcept>

namespace rematch {

struct LossNotFinite : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws LossNotFinite that names the step.
void require_finite(double loss, std::int64_t step);

}  // namespace rematch
