// Summarizes step samples, grouped by round, into a TimeRecord: median, interval, quality, and
// ratio to the reference. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/record/point.h"
#include "reports/statistics/statistics.h"

namespace rematch {

// The measurements of one child process: the samples of one round, and the medians of the phases of
// the steps.
using TimedRound = TimeRecord;

// Fills all fields except the ratio. `rounds` must be in the order in which they ran, and must not
// be empty.
TimeRecord summarize_rounds(const std::vector<TimedRound>& rounds);

// Returns whether the GPU was slowed down or used by others during the round. Another attempt may
// then be better. Allocator retries do not count, because they would recur in the next attempt.
bool is_disturbed(const TimedRound& round);

// Returns the step time divided by the reference's step time, paired by round. `floor` is the
// smallest difference that counts; it comes from the A/A control.
StepRatioRecord ratio_to(const std::string& reference_policy, const TimeRecord& time,
                         const TimeRecord& reference, double floor);

// Returns the samples in nanoseconds, in the form that the statistics functions take.
Rounds rounds_of(const TimeRecord& time);

}  // namespace rematch
