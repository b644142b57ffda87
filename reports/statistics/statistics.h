// Robust statistics of step times. The unit is the round (one child process): steps of one process
// share its conditions, so intervals are computed over rounds. No clock, no LibTorch. Seconds,
// nanoseconds and ratios are all plain doubles here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policies/base/words.h"

namespace rematch {

// [round][step], in the order of measurement.
using Rounds = std::vector<std::vector<double>>;

struct Interval {
  double low = 0;
  double high = 0;
  bool operator==(const Interval&) const = default;
};

// An estimate with its 95 % interval. One round says nothing about the spread between rounds, so it
// has no interval.
struct Estimate {
  double value = 0;
  std::optional<Interval> interval;
  bool operator==(const Estimate&) const = default;
};

// Throw std::invalid_argument for an empty list.
double median(std::vector<double> samples);
double median_absolute_deviation(const std::vector<double>& samples);  // not scaled
// Interpolates linearly between order statistics. `fraction` lies in [0, 1].
double quantile(std::vector<double> samples, double fraction);

std::string percent(double fraction);  // "12.3 %"

// Median of the round medians, with an interval within [0, inf). Every round must have a sample.
// Samples must not be negative.
Estimate median_over_rounds(const Rounds& rounds);
// Same for samples of either sign, such as differences of times. The interval may extend below 0.
Estimate median_difference_over_rounds(const Rounds& rounds);

// Ratio of the medians of two arms that ran separately, so their rounds do not correspond.
Estimate ratio_of_medians(const Rounds& numerator, const Rounds& denominator);

// Ratio of two arms that took turns. Round i of one ran beside round i of the other, so common
// slowdowns cancel. Throws std::invalid_argument unless both have the same number of rounds.
Estimate paired_ratio(const Rounds& numerator, const Rounds& denominator);

// Last third of a round over its first third, minus 1; the median over rounds. Absent if no round
// has six samples.
std::optional<double> drift(const Rounds& rounds);

enum class Quality : std::uint8_t { kGood, kFewRounds, kNoisy, kDrifting };
template <>
inline constexpr std::array<std::string_view, 4> kWords<Quality> = {"good", "few_rounds", "noisy",
                                                                    "drifting"};

// How far the samples can be trusted. The verdict is the worst finding; every finding has a reason.
struct QualityReport {
  Quality verdict = Quality::kGood;
  double noise_ratio = 0;  // 1.4826 MAD over the median in a round; median over rounds
  std::optional<double> drift_ratio;
  std::vector<std::string> reasons;
};
QualityReport judge_quality(const Rounds& rounds);

enum class RatioVerdict : std::uint8_t { kFaster, kSlower, kSame, kUnsure };
template <>
inline constexpr std::array<std::string_view, 4> kWords<RatioVerdict> = {"faster", "slower", "same",
                                                                         "unsure"};

// Differences up to this fraction are not reported: two arms that ran the same code on an idle
// machine differ by about as much.
inline constexpr double kSmallestDifference = 0.01;

// If a control's distance from 1 exceeds this, nothing on that machine can be called the same.
inline constexpr double kWidestSame = 0.05;

// Compares the interval with the band from 1 / (1 + floor) to 1 + floor. Entirely above it is
// slower, entirely below it is faster. Entirely inside it is the same, if `floor` is at most
// kWidestSame. Everything else, and a missing interval, is unsure. An A/A control can raise
// `floor`.
RatioVerdict judge_ratio(const Estimate& ratio, double floor = kSmallestDifference);

// The floor that an A/A control of the same session requires: the distance of its interval from 1,
// at least kSmallestDifference.
double floor_of_control(const Estimate& control);

}  // namespace rematch
