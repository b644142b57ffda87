// The gate's plain limits on peak bytes, executed ops and slowdown, and the check that a plan's
// predicted ops were executed. Pure.
#pragma once

#include "reports/gate/gate.h"

namespace rematch {

CheckRecord check_peak(const PointRecord& point, Bytes limit);
CheckRecord check_expectation(const PointRecord& point, const Expectation& expectation);

// True if neither a report nor this build contains an op of this name. Without this check, an
// expectation of 0 executions would hold for every misspelt name.
bool is_unknown_op(const std::string& name, const Report& report, const Report* reference);
CheckRecord refuse_unknown_op(const Expectation& expectation, const Report& report);

// How two points were measured: in one report, in a merged report, in two reports with equal
// environments, or in different environments.
enum class Measured : std::uint8_t { kInOneReport, kInMergedReport, kInOneEnvironment, kApart };

// Compares the step time with the reference's. Uses the ratio of paired rounds if one report
// measured both points alternately, else the ratio of medians.
CheckRecord check_slowdown(const PointRecord& point, const PointRecord& reference, double limit,
                           Measured measured);

// Checks that the point executed the ops that its plan predicts. Absent if there is no mismatch or
// no prediction.
std::optional<CheckRecord> check_prediction(const PointRecord& point);

}  // namespace rematch
