// How far step times can be trusted: said once below a table, so that a row needs a word at most.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "reports/record/point.h"
#include "reports/render/comparison.h"

namespace rematch {

// The text in place of a figure that noise has made meaningless.
inline constexpr const char* kTooNoisy = "too noisy";

// The ends of a ratio's 95 % interval are so far apart that the ratio says nothing.
bool is_too_noisy(const std::optional<std::array<double, 2>>& ratio_interval);

// "by -1.2 % to +2.1 %", or that this is too noisy: how far a ratio to itself strays from 1.
std::string stray_words(const std::array<double, 2>& ratio_interval);

// For all rows together: the A/A control, how many ratios are unsure, which points have noisy times
// and what to do about it. Empty if nothing was measured of that.
std::string noise_words(const Comparison& comparison);

}  // namespace rematch
