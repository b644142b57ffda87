// Robust statistics of step times. The unit is the round (one child process): steps in a process
// share its luck, so intervals are over rounds. No clock, no LibTorch; seconds, nanoseconds and
// ratios are all plain doubles here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policies/base/words.h"

namespace rematch {

// [round][step], in the order of the clock.
using Rounds = std::vector<std::vector<double>>;

struct Interval {
  double low = 0;
  double high = 0;
  bool operator==(const Interval&) const = default;
};

// An estimate with its 95 % interval. One round says nothing of the spread between rounds, so it
// has no interval.
struct Estimate {
  double value = 0;
  std::optional<Interval> interval;
  bool operator==(const Estimate&) const = default;
};

// These take a non-empty list and throw std::invalid_argument for an empty one.
double median(std::vector<double> samples);
double median_absolute_deviation(const std::vector<double>& samples);  // not scaled
// Linear between order statistics; `fraction` in [0, 1].
double quantile(std::vector<double> samples, double fraction);

std::string percent(double fraction);  // "12.3 %"

// Median of the round medians, and an interval within [0, inf). Every round must hold a sample, and
// samples are not below 0.
Estimate median_over_rounds(const Rounds& rounds);
// The same of samples of either sign, differences of times: an interval may lie below 0.
Estimate median_difference_over_rounds(const Rounds& rounds);

// Ratio of the medians of two arms that ran apart; rounds do not correspond.
Estimate ratio_of_medians(const Rounds& numerator, const Rounds& denominator);

// Ratio of two arms that took turns: round i of one ran beside round i of the other, so what
// slowed both cancels. Throws std::invalid_argument unless both have as many rounds.
Estimate paired_ratio(const Rounds& numerator, const Rounds& denominator);

// Last third of a round over its first third, less one; the median over rounds. Absent where no
// round has six samples.
std::optional<double> drift(const Rounds& rounds);

enum class Quality : std::uint8_t { kGood, kFewRounds, kNoisy, kDrifting };
template <>
inline constexpr std::array<std::string_view, 4> kWords<Quality> = {"good", "few_rounds", "noisy",
                                                                    "drifting"};

// How far the samples can be trusted. The verdict is the worst finding; each has a reason.
struct QualityReport {
  Quality verdict = Quality::kGood;
  double noise_ratio = 0;  // 1.4826 MAD over the median within a round; the median over rounds
  std::optional<double> drift_ratio;
  std::vector<std::string> reasons;
};
QualityReport judge_quality(const Rounds& rounds);

enum class RatioVerdict : std::uint8_t { kFaster, kSlower, kSame, kUnsure };
template <>
inline constexpr std::array<std::string_view, 4> kWords<RatioVerdict> = {"faster", "slower", "same",
                                                                         "unsure"};

// Differences up to this fraction are not claimed: two arms that ran the same code on an idle
// machine differ by about as much.
inline constexpr double kSmallestDifference = 0.01;

// A control that strays further than this shows a machine on which nothing can be called the same.
inline constexpr double kWidestSame = 0.05;

// The position of the interval against 1 give or take `floor`: above it whole, below it whole,
// inside it whole while `floor` is at most kWidestSame; anything else, and no interval, is unsure.
// `floor` grows with an A/A control.
RatioVerdict judge_ratio(const Estimate& ratio, double floor = kSmallestDifference);

// The floor that an A/A control of the same session asks for: how far its interval strays from 1,
// at least kSmallestDifference.
double floor_of_control(const Estimate& control);

}  // namespace rematch
