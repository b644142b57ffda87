// The gate's plain limits: peak bytes, executed ops, slowdown; and what a plan says of its ops.
// Pure.
#pragma once

#include "reports/gate/gate.h"

namespace rematch {

CheckRecord check_peak(const PointRecord& point, Bytes limit);
CheckRecord check_expectation(const PointRecord& point, const Expectation& expectation);

// An op of that name runs nowhere in the reports and is no op that this build knows: that it runs 0
// times is true of every misspelt name.
bool is_unknown_op(const std::string& name, const Report& report, const Report* reference);
CheckRecord refuse_unknown_op(const Expectation& expectation, const Report& report);

// The place that two points' measurements share, if any. In a report merged from several only the
// points themselves can say whether they took turns.
enum class Measured : std::uint8_t { kInOneReport, kInMergedReport, kInOneEnvironment, kApart };

// Against the reference's step time: the ratio that the run measured by turns where both are of one
// report, else that of medians.
CheckRecord check_slowdown(const PointRecord& point, const PointRecord& reference, double limit,
                           Measured measured);

// Did the point execute what its plan says? A point that ended ok did; what says otherwise was
// measured by a broken build, or edited. Nothing: it did, or there is nothing to hold it to.
std::optional<CheckRecord> check_prediction(const PointRecord& point);

}  // namespace rematch
