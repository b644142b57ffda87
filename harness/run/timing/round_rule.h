// The number of rounds of timed steps. Needs no LibTorch.
#pragma once

namespace rematch {

// The number of rounds. If `least` equals `most`, exactly that many rounds run. Otherwise rounds
// stop once the ratios of all arms, including the A/A control, to the reference arm are precise
// enough. Half of each ratio's 95 % interval, divided by the ratio, is then at most `precision`.
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
