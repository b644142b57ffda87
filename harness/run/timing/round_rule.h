// The number of rounds of timed steps. Needs no LibTorch.
#pragma once

namespace rematch {

// The number of rounds. If `least` equals `most`, exactly that many rounds run. Otherwise rounds
// stop once the ratio of every arm to the reference arm, including the A/A control, has at most
// this `precision`: half the 95 % interval divided by the ratio.
struct RoundRule {
  int least = 4;
  int most = 8;
  double precision = 0.02;
  // Maximum number of repeats of a round in which the GPU was throttled or shared. The last repeat
  // is always kept. More repeats would seldom help: cooling down takes longer than a round, and
  // another process usually stays.
  int most_repeats = 2;
};

}  // namespace rematch
