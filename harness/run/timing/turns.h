// Times arms alternately. In each round every arm runs once. Every second round runs the arms in
// reverse order. Rounds end when every ratio is precise enough or the maximum number of rounds is
// reached.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/run/timing/round_rule.h"
#include "harness/run/timing/time_summary.h"
#include "reports/record/point.h"
#include "reports/statistics/statistics.h"

namespace rematch {

// A point that is timed in every round. The A/A control is the reference a second time.
struct Arm {
  std::size_t point = 0;
  bool control = false;
  std::vector<TimedRound> rounds;
};

// One attempt at a round.
struct Turn {
  int round = 0;
  int repeat = 0;          // number of earlier attempts at the round
  bool from_disk = false;  // true if the results of all arms are loaded from disk
};

// Returns the number of the attempt whose results for the round are on disk, or nothing. All arms
// of a round are loaded, or all are measured, because they are compared with each other.
using FindOnDisk = std::function<std::optional<int>(int round)>;
using MeasureArm = std::function<PointRecord(const Arm& arm, const Turn& turn)>;

// Fills the arms' rounds. Returns the number of rounds. Omits rounds that did not end ok.
int take_turns(std::vector<Arm>& arms, std::size_t reference, const RoundRule& rule,
               const FindOnDisk& find_on_disk, const MeasureArm& measure);

// Returns the order in which a round runs its arms. Every second round uses the reverse order, so
// that no arm always runs first. Pure.
std::vector<std::size_t> order_of_round(int round, std::size_t num_arms);

// Returns half the width of an estimate's interval, divided by its value. The estimate must have an
// interval. Pure.
double half_interval(const Estimate& estimate);

// Returns the largest half_interval() among the arms' ratios to arm `reference`. If the reference
// is the only arm, uses the interval of its step time. Skips failed arms. Absent if fewer than two
// rounds ran. Pure.
std::optional<double> widest_half_interval(const std::vector<Arm>& arms, std::size_t reference);

}  // namespace rematch
