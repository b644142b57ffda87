// The conditions of `rematch compare --fail-on`. Decides whether a comparison meets a condition,
// and whether its data suffices to decide this. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/record/compare.h"

namespace rematch {

enum class FailOn : std::uint8_t { kSlower, kPeak, kCounts, kLoss, kMissing, kFailed };
template <>
inline constexpr std::array<std::string_view, 6> kWords<FailOn> = {"slower", "peak",    "counts",
                                                                   "loss",   "missing", "failed"};

// Returns the metrics that decide the condition. Empty for the conditions `missing` and `failed`,
// which need no metric.
std::vector<Metric> metrics_of(FailOn what);

bool is_found(const CompareRecord& record, FailOn what);

// Returns why the condition `what` is neither met nor ruled out, in one line, or "" if it is
// decided. It is undecided if:
// - there are no rows
// - one side has no value of one of the condition's metrics
// - neither side has a value of any of the condition's metrics
// - a time may be slower, but noise hides the difference
// - a point that finished in the base is missing or failed in the candidate
std::string why_undecided(const CompareRecord& record, FailOn what);

// Returns the requested conditions that could not be judged, such as "slower (no point ...)". If no
// condition was requested and the reports had nothing to compare, returns one line that says why.
std::vector<std::string> undecided(const CompareRecord& record);

}  // namespace rematch
