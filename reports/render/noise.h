// Writes text below a table about how reliable its step times are.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "reports/record/point.h"
#include "reports/render/comparison.h"

namespace rematch {

// Text that replaces a figure that is too noisy.
inline constexpr const char* kTooNoisy = "too noisy";

// True if the 95 % interval of a ratio is so wide that the ratio is meaningless.
bool is_too_noisy(const std::optional<std::array<double, 2>>& ratio_interval);

// Describes how far the ratio of the reference to itself is from 1, for example "by -1.2 % to +2.1
// %", or says that the ratio is too noisy.
std::string stray_words(const std::array<double, 2>& ratio_interval);

// Describes all rows together: the A/A control, how many ratios may be noise, which points have
// noisy times, and what to do. May be empty.
std::string noise_words(const PolicyComparison& comparison);

}  // namespace rematch
