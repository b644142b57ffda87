// Says once below a table how far step times can be trusted, so that a row needs one word at most.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "reports/record/point.h"
#include "reports/render/comparison.h"

namespace rematch {

// Replaces a figure that noise has made meaningless.
inline constexpr const char* kTooNoisy = "too noisy";

// True if the ends of a ratio's 95 % interval are so far apart that the ratio says nothing.
bool is_too_noisy(const std::optional<std::array<double, 2>>& ratio_interval);

// Returns how far a ratio of the reference to itself is from 1, such as "by -1.2 % to +2.1 %", or
// that it is too noisy.
std::string stray_words(const std::array<double, 2>& ratio_interval);

// Describes all rows together: the A/A control, how many ratios are unsure, which points have noisy
// times, and what to do. Empty if nothing of the kind was measured.
std::string noise_words(const PolicyComparison& comparison);

}  // namespace rematch
