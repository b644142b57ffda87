#include "harness/training/finite_loss.h"

#include <cmath>
#include <string>

namespace rematch {

void require_finite(double loss, std::int64_t step) {
  if (std::isfinite(loss)) return;
  throw LossNotFinite("the loss of step " + std::to_string(step) + " is " +
                      (std::isnan(loss) ? "not a number" : "infinite") +
                      "; lower the learning rate or check the data");
}

}  // namespace rematch
