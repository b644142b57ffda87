// From step samples by round to a TimeRecord: median, interval, quality, ratio to the reference.
// Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/record/point.h"
#include "reports/statistics/statistics.h"

namespace rematch {

// Measurements of one child process: samples of one round, medians of its phases.
using TimedRound = TimeRecord;

// Everything but the ratio. `rounds` in the order they ran; must not be empty.
TimeRecord summarize_rounds(const std::vector<TimedRound>& rounds);

// Was the GPU slowed down or used by others while the round was timed, so that another attempt may
// be better? A device that is short of memory stays so.
bool is_disturbed(const TimedRound& round);

// Step time over the reference's, paired by round. `floor` is what the A/A control asks for.
StepRatioRecord ratio_to(const std::string& reference_policy, const TimeRecord& time,
                         const TimeRecord& reference, double floor);

// The samples as statistics take them: nanoseconds.
Rounds rounds_of(const TimeRecord& time);

}  // namespace rematch
