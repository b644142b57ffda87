// How many rounds of timed steps a run has. No LibTorch.
#pragma once

namespace rematch {

// The number of rounds. If `least` equals `most`, exactly that many rounds run. Otherwise the
// rounds stop once the ratio of every arm to the reference arm is known to within `precision` (half
// the 95 % interval divided by the ratio). These ratios include the A/A control.
struct RoundRule {
  int least = 4;
  int most = 8;
  double precision = 0.02;
  // A round in which the GPU was throttled or shared is measured again, at most this many times.
  // The last attempt is always kept. More attempts would seldom help: cooling down takes longer
  // than a round, and another process usually stays.
  int most_repeats = 2;
};

}  // namespace rematch
