// Conditions of `rematch compare --fail-on`: whether a comparison found one, and whether it could
// have found it. A condition that was not measured does not pass. Pure.
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

// Returns the metrics that decide the condition; empty if points decide it.
std::vector<Metric> metrics_of(FailOn what);

bool is_found(const CompareRecord& record, FailOn what);

// Returns one line that says why the comparison cannot rule out `what`, or "" if it can. It cannot
// rule it out in these cases: there are no rows; one side alone knows one of its metrics; neither
// side knows any of them; noise hides whether a time is slower; or a point that the base finished
// is missing or failed in the candidate.
std::string why_undecided(const CompareRecord& record, FailOn what);

// Returns the requested conditions that could not be judged: "slower (no point ...)". If none was
// requested, checks whether anything was compared at all.
std::vector<std::string> undecided(const CompareRecord& record);

}  // namespace rematch
