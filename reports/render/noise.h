// Writes text below a table about how reliable its step times are, so that each row needs at most
// one word about noise.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "reports/record/point.h"
#include "reports/render/comparison.h"

namespace rematch {

// Text that replaces a figure that is meaningless because of noise.
inline constexpr const char* kTooNoisy = "too noisy";

// True if the 95 % interval of a ratio is too wide for the ratio to be meaningful.
bool is_too_noisy(const std::optional<std::array<double, 2>>& ratio_interval);

// Describes how far the ratio of the reference to itself is from 1, such as "by -1.2 % to +2.1 %",
// or says that the ratio is too noisy.
std::string stray_words(const std::array<double, 2>& ratio_interval);

// Describes all rows together: the A/A control, how many ratios are unsure, which points have noisy
// times, and what to do. Empty if there is nothing to say.
std::string noise_words(const PolicyComparison& comparison);

}  // namespace rematch
