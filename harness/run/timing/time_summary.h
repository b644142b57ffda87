// Summarizes step samples, grouped by round, into a TimeRecord: median, interval, quality, and
// ratio to the reference. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/record/point.h"
#include "reports/statistics/statistics.h"

namespace rematch {

// The measurements of one child process: the samples of one round, and the median time of each
// phase of a step.
using TimedRound = TimeRecord;

// Fills all fields except the ratio. `rounds` must be in the order in which they ran, and must not
// be empty.
TimeRecord summarize_rounds(const std::vector<TimedRound>& rounds);

// Returns whether the GPU was throttled or used by other processes during the round, so that a
// repeat may be better. Allocator retries do not count, because they would occur again.
bool is_disturbed(const TimedRound& round);

// Returns the step time divided by the reference's step time, paired by round. `floor` is the
// smallest significant difference, from the A/A control.
StepRatioRecord ratio_to(const std::string& reference_policy, const TimeRecord& time,
                         const TimeRecord& reference, double floor);

// Returns the samples in nanoseconds, as the statistics functions expect them.
Rounds rounds_of(const TimeRecord& time);

}  // namespace rematch
