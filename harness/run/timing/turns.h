// Times arms by turns: rounds of one child process an arm, in alternating order, until every ratio
// is known well enough or there are as many rounds as allowed. Knows nothing of points' other
// facts.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/run/timing/time_summary.h"
#include "reports/record/point.h"
#include "reports/statistics/statistics.h"

namespace rematch {

// How many rounds there are. With `least` equal to `most`, that many; else they end where every
// arm's ratio to the reference arm, the A/A control's too, is known to within `precision` (half the
// 95 % interval over the ratio).
struct RoundRule {
  int least = 4;
  int most = 8;
  double precision = 0.02;
  // A round in which the GPU was throttled or shared is measured again, at most so many times; the
  // last attempt is kept whatever it is. Cooling down takes longer than a round, and a neighbour
  // stays, so more attempts would seldom help.
  int most_repeats = 2;
};

// Who takes part in a round: a point that is ok, or the reference once more, as the A/A control.
struct Arm {
  std::size_t point = 0;
  bool control = false;
  std::vector<TimedRound> rounds;
};

// One attempt at a round.
struct Turn {
  int round = 0;
  int repeat = 0;          // attempts before this one
  bool from_disk = false;  // every arm of this attempt is there
};

// A round is taken from disk whole or measured whole, since its arms are compared with each other.
// Gives what attempt at the round is on disk.
using FindOnDisk = std::function<std::optional<int>(int round)>;
using MeasureArm = std::function<PointRecord(const Arm& arm, const Turn& turn)>;

// Fills the arms' rounds and gives their number. An arm whose round did not end ok goes without it.
int take_turns(std::vector<Arm>& arms, std::size_t reference, const RoundRule& rule,
               const FindOnDisk& find_on_disk, const MeasureArm& measure);

// The order of a round's arms: as given, then reversed, and so on, so that no arm always runs
// first. Pure.
std::vector<std::size_t> order_of_round(int round, std::size_t num_arms);

// Half of an estimate's interval over its value; the estimate must have an interval. Pure.
double half_interval(const Estimate& estimate);

// The widest of the arms' half intervals, as a fraction: of an arm's ratio to arm `reference`, and
// of that one's own step time where it is alone. An arm with fewer rounds than the reference has
// failed and does not count. Absent below two rounds. Pure.
std::optional<double> widest_half_interval(const std::vector<Arm>& arms, std::size_t reference);

}  // namespace rematch
