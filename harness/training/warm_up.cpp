#include "harness/training/warm_up.h"

namespace rematch {

void warm_up(Training& training, std::int64_t first_step, int num_steps, PassPosition& position) {
  position = {"warm-up", -1, {}};
  Watching listener(position);
  for (int step = 0; step < num_steps; ++step) training.step(first_step + step, listener);
}

}  // namespace rematch
