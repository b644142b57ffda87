// Conditions of `rematch compare --fail-on`: whether a comparison found it, and whether it could
// have: what was not measured is not passed. Pure.
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

// The metrics that decide it; none: points do.
std::vector<Metric> metrics_of(FailOn what);

bool is_found(const CompareRecord& record, FailOn what);

// Why the comparison cannot tell that `what` is not there, in a line; empty: it can. It cannot
// where there are no rows, where one of its metrics is known on one side alone or none of them on
// both, where a time may be slower for all that its noise lets be told, and where a point that the
// base finished is missing or failed in the candidate.
std::string why_undecided(const CompareRecord& record, FailOn what);

// The conditions asked for that could not be judged: "slower (no point ...)".
// Asked for nothing: whether anything was compared at all.
std::vector<std::string> undecided(const CompareRecord& record);

}  // namespace rematch
